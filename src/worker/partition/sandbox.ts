// Starts a worker in a sandbox, or in a guest inside of one, and explains its end. It shares no memory with this
// process but the rings of its channel. Not here: the command line (start-line.ts), what may come back
// (context/decode/data-only.ts).

import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import type { ChannelOffer } from '../../channels/index.js';
import { clearTimeout, defer, jsonOf, ownOf, setTimeout } from '../../lib/index.js';
import { nativeProblem } from '../../native.js';
import { entryFile } from '../parent/entry-file.js';
import { afterOutput, listenToOutput, type OutputListener } from '../parent/output.js';
import { ChildHandle } from '../parent/process.js';
import type { WorkerTicket } from '../protocol.js';
import type { WorkerExit, WorkerHandle, WorkerOptions } from '../types.js';
import { firstChannelFd } from './command-line.js';
import { limitOf, refusalOf, textOf } from './ends.js';
import { workerFiles } from './files.js';
import { unavailable } from './layers.js';
import type { FilledPartition } from './options.js';
import { OutputLimit } from './output-limit.js';
import { passOn } from './own-output.js';
import { partitionStart } from './start-line.js';

/** Time in which `run` ends the partition and removes its groups, of which there may be three, in ms. */
const killMs = 10_000;

/** Starts the worker; a start that the system refuses is an exit with the error. Throws `PARTITION_UNAVAILABLE`. */
export function startPartition(
  ticket: WorkerTicket,
  offer: ChannelOffer,
  options: WorkerOptions,
  partition: FilledPartition,
): WorkerHandle {
  if (partition.kind === 'vm' && offer.ticket.kind !== 'shm') {
    throw unavailable('a guest needs shared memory', ownOf({ cause: nativeProblem() }));
  }
  const entry = entryFile();
  const { line, stdio, leave } = partitionStart(partition, {
    bindings: workerFiles(entry),
    words: [...options.execArgv, entry, jsonOf({ ...ticket, isPartition: true })],
    maxHeapMb: options.maxHeapMb,
    channel: offer.stdio,
  });
  const [program = '', ...args] = line;
  const spawnOptions: SpawnOptions = {
    stdio: [...stdio],
    env: {},
    detached: true, // a Ctrl-C reaches the whole group of a terminal: the parent decides about its workers
    windowsHide: true,
  };
  const child = spawn(program, args, ownOf(spawnOptions));
  child.unref();
  const handle = new SandboxHandle(child, options.maxHeapMb, partition);
  handle.follow(ticket.workerId, options.onOutput ?? passOn);
  void handle.exited.then(leave);
  return handle;
}

class SandboxHandle extends ChildHandle {
  readonly #exit = defer<WorkerExit>();
  readonly exited = this.#exit.promise;
  readonly #process: ChildProcess;
  readonly #maxHeapMb: number;
  readonly #partition: FilledPartition;
  readonly #output: OutputLimit;
  #isUnwanted = false;
  #killTimer: NodeJS.Timeout | undefined;

  constructor(child: ChildProcess, maxHeapMb: number, partition: FilledPartition) {
    super(child, firstChannelFd);
    this.#process = child;
    this.#maxHeapMb = maxHeapMb;
    this.#partition = partition;
    this.#output = new OutputLimit(partition.outputMb, () => this.kill());
  }

  /** Reads its output, and waits for its end. To be called once. `worker`: its number. */
  follow(worker: number, onOutput: OutputListener): void {
    const child = this.#process;
    const { stdout, stderr } = child; // without a descriptor left there are none
    const stdio: readonly unknown[] = Array.isArray(child.stdio) ? child.stdio : [];
    const status = textOf(stdio.at(-1));
    const listener = this.#output.around([stdout, stderr], onOutput);
    const output = listenToOutput(stdout ?? null, stderr ?? null, worker, listener);
    child.once('error', (error) => {
      if (child.pid === undefined) this.#exit.resolve({ exitCode: null, signal: null, error });
    });
    child.once('exit', (exitCode, signal) => {
      clearTimeout(this.#killTimer);
      afterOutput(output, () => {
        void status.then((text) => this.#exit.resolve(this.#explain(exitCode, signal, text)));
      });
    });
  }

  /** Returns its end with the reason. `status`: what `manycore-enter run` has written. */
  #explain(exitCode: number | null, signal: NodeJS.Signals | null, status: string): WorkerExit {
    const { cause, reached } = this.#output;
    const { text: lastLine, hasPanicked } = cause;
    const refusal = refusalOf(exitCode, lastLine);
    const isOwnEnd = refusal === undefined && !this.#isUnwanted;
    const ofKernel = isOwnEnd
      ? limitOf(status, exitCode, this.#partition, cause, this.#maxHeapMb)
      : undefined;
    const limit = reached ?? ofKernel;
    const ofGuest = hasPanicked && !this.#isUnwanted ? new Error(lastLine) : undefined;
    const error = limit === undefined ? (refusal ?? ofGuest) : new Error(limit.reason);
    return { exitCode, signal, error, limit, lastLine };
  }

  override terminate(): void {
    this.#isUnwanted = true;
    super.terminate();
  }

  /** Sends SIGTERM first: the process outside ends all others, and then removes the groups, which no other can. */
  override kill(): void {
    this.terminate();
    this.#killTimer ??= setTimeout(() => super.kill(), killMs);
    this.#killTimer.unref();
  }
}
