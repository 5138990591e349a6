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
import type { ReachedLimit, WorkerExit, WorkerHandle, WorkerOptions } from '../types.js';
import { firstChannelFd } from './command-line.js';
import { limitOf, refusalOf, textOf } from './ends.js';
import { workerFiles } from './files.js';
import { unavailable } from './layers.js';
import type { FilledPartition } from './options.js';
import { CauseLine, passOn } from './own-output.js';
import { partitionStart } from './start-line.js';

const mib = 2 ** 20;
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
  const handle = new SandboxHandle(child, ticket.workerId, options, partition);
  void handle.exited.then(leave);
  return handle;
}

class SandboxHandle extends ChildHandle {
  readonly exited: Promise<WorkerExit>;
  #excess: ReachedLimit | undefined;
  #isUnwanted = false;
  #killTimer: NodeJS.Timeout | undefined;

  constructor(
    child: ChildProcess,
    worker: number,
    options: WorkerOptions,
    partition: FilledPartition,
  ) {
    super(child, firstChannelFd);
    const { stdout, stderr } = child; // without a descriptor left there are none
    const stdio: readonly unknown[] = Array.isArray(child.stdio) ? child.stdio : [];
    const status = textOf(stdio.at(-1));
    const limit = new OutputLimit(partition.outputMb, () => this.#endFor(limit.reached));
    const listener = limit.around(options.onOutput ?? passOn);
    const output = listenToOutput(stdout ?? null, stderr ?? null, worker, listener);
    const { promise, resolve } = defer<WorkerExit>();
    this.exited = promise;
    child.once('error', (error) => {
      if (child.pid !== undefined) return;
      resolve({ exitCode: null, signal: null, error });
    });
    child.once('exit', (exitCode, signal) => {
      clearTimeout(this.#killTimer);
      afterOutput(output, () => {
        const { text: lastLine, hasPanicked } = limit.cause;
        const refusal = refusalOf(exitCode, lastLine);
        void status.then((text) => {
          const ofKernel = this.#isUnwanted
            ? undefined
            : limitOf(text, exitCode, partition, limit.cause, options.maxHeapMb);
          const reached = this.#excess ?? (refusal === undefined ? ofKernel : undefined);
          const ofGuest = hasPanicked && !this.#isUnwanted ? new Error(lastLine) : undefined;
          const error = reached === undefined ? (refusal ?? ofGuest) : new Error(reached.reason);
          resolve({ exitCode, signal, error, limit: reached, lastLine });
        });
      });
    });
  }

  override terminate(): void {
    this.#isUnwanted = true;
    super.terminate();
  }

  /** Only the process outside can remove the groups: it is asked first, and does not wait for anything. */
  override kill(): void {
    this.terminate();
    this.#killTimer ??= setTimeout(() => super.kill(), killMs);
    this.#killTimer.unref();
  }

  #endFor(reached: ReachedLimit): void {
    this.#excess ??= reached;
    this.kill();
  }
}

/** Counts the output of a partition, and keeps the line that says why it has ended. */
class OutputLimit {
  readonly #limitMb: number;
  readonly #onExcess: () => void;
  #count = 0;
  readonly cause = new CauseLine();

  constructor(limitMb: number, onExcess: () => void) {
    this.#limitMb = limitMb;
    this.#onExcess = onExcess;
  }

  get reached(): ReachedLimit {
    const reason = `it wrote more than ${this.#limitMb} MiB of output (outputMb)`;
    return { name: 'output', reason };
  }

  around(listener: OutputListener): OutputListener {
    return (text, from) => {
      const before = this.#count;
      this.#count += text.length;
      if (before > this.#limitMb * mib) return;
      if (from.stream === 'stderr') this.cause.add(text);
      listener(text, from);
      if (this.#count > this.#limitMb * mib) this.#onExcess();
    };
  }
}
