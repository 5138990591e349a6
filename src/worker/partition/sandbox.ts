// Starts a worker in a sandbox, or in a guest inside of one, and explains its end. It shares no memory with this
// process but the rings of its channel. Not here: the command line (command-line.ts), what may come back (context/decode/data-only.ts).

import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { realpathSync } from 'node:fs';
import type { ChannelOffer } from '../../channels/index.js';
import { clearTimeout, defer, invalid, jsonOf, ownOf, setTimeout } from '../../lib/index.js';
import { nativeProblem } from '../../native.js';
import { entryFile } from '../parent/entry-file.js';
import { afterOutput, listenToOutput, type OutputListener } from '../parent/output.js';
import { ChildHandle } from '../parent/process.js';
import type { WorkerTicket } from '../protocol.js';
import type { ReachedLimit, WorkerExit, WorkerHandle, WorkerOptions } from '../types.js';
import { commandLine, firstChannelFd, heapMb, type SandboxedProgram } from './command-line.js';
import { limitOf, refusalOf, textOf } from './ends.js';
import { type Binding, isWithin, workerFiles } from './files.js';
import { guestHeapMb, guestOf, leaveCore, sandboxAround } from './guest.js';
import { gvisorLine } from './gvisor.js';
import { engineOf, partitionTools, unavailable, vmPrograms } from './layers.js';
import type { FilledPartition, FilledVm } from './options.js';
import { passOn } from './own-output.js';

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
  const entry = entryFile();
  const bindings = workerFiles(entry);
  checkWrites(partition, bindings);
  const isVm = partition.kind === 'vm';
  const ownHeapMb = isVm ? guestHeapMb(partition) : heapMb(partition);
  const command = [
    process.execPath,
    `--max-old-space-size=${options.maxHeapMb > 0 ? options.maxHeapMb : ownHeapMb}`,
    ...options.execArgv,
    entry,
    jsonOf({ ...ticket, isPartition: true }),
  ];
  const { line, stdio, core } = isVm
    ? vmStart(offer, partition, { bindings, command })
    : sandboxStart(offer, { sandbox: partition, bindings, command });
  const [program = '', ...args] = line;
  const spawnOptions: SpawnOptions = {
    stdio: [...stdio, 'pipe'],
    env: {},
    detached: true, // a Ctrl-C reaches the whole group of a terminal: the parent decides about its workers
    windowsHide: true,
  };
  const child = spawn(program, args, ownOf(spawnOptions));
  child.unref();
  const handle = new SandboxHandle(child, ticket.workerId, options, partition);
  if (core !== undefined) void handle.exited.then(() => leaveCore(core));
  return handle;
}

interface Start {
  /** The program, and its arguments. */
  readonly line: readonly string[];
  /** Descriptors of the program, without that of its status. */
  readonly stdio: readonly (number | 'ignore' | 'pipe')[];
  /** The core that a guest has taken. */
  readonly core?: number | undefined;
}

function sandboxStart({ stdio }: ChannelOffer, program: Omit<SandboxedProgram, 'lastFd'>): Start {
  const lastFd = firstChannelFd + stdio.length - 1;
  return {
    line: commandLine({ ...program, lastFd }),
    stdio: ['ignore', 'pipe', 'pipe', ...stdio],
  };
}

function vmStart(
  offer: ChannelOffer,
  vm: FilledVm,
  program: Pick<SandboxedProgram, 'bindings' | 'command'>,
): Start {
  if (offer.ticket.kind !== 'shm') {
    throw unavailable('a guest needs shared memory', ownOf({ cause: nativeProblem() }));
  }
  const around = { ...program, sandbox: sandboxAround(vm) };
  if (engineOf(vm) === 'uml') {
    const guest = guestOf(vm);
    return { ...sandboxStart(offer, { ...around, guest }), core: guest.core };
  }
  // The channel comes as stdin and stdout (crates/enter/src/gvisor.rs).
  return {
    line: gvisorLine({ ...around, lastFd: 2 }, vm.fileMb),
    stdio: [...offer.stdio, 'pipe'],
  };
}

/** Refuses folders in which a partition could change what the next one runs. */
function checkWrites(partition: FilledPartition, bindings: readonly Binding[]): void {
  const files = [...bindings.map(({ from }) => from), ...programsOf(partition)];
  for (const path of partition.write) {
    const own = files.find((file) => isWithin(file, path) || isWithin(path, file));
    if (own !== undefined) throw invalid('worker.write', path, `apart from ${own}`);
  }
}

/** The programs that run outside of a partition, or around it. */
function programsOf(partition: FilledPartition): readonly string[] {
  const { enter, bubblewrap } = partitionTools(partition.allow);
  const ofGuests = partition.kind === 'vm' ? Object.values(vmPrograms(partition.kernel)) : [];
  const paths = ofGuests.flatMap((program) => ('path' in program ? program.path : []));
  return [enter, bubblewrap, ...paths].map((path) => realpathSync(path));
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
        const refusal = refusalOf(exitCode, limit.lastError);
        void status.then((text) => {
          const ofKernel = this.#isUnwanted
            ? undefined
            : limitOf(text, exitCode, partition, limit.lastError);
          const reached = this.#excess ?? (refusal === undefined ? ofKernel : undefined);
          const error = reached === undefined ? refusal : new Error(reached.reason);
          resolve({ exitCode, signal, error, limit: reached });
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

/** Counts the output of a partition, and keeps the last line on stderr, which says why a start failed. */
class OutputLimit {
  readonly #limitMb: number;
  readonly #onExcess: () => void;
  #count = 0;
  lastError = '';

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
      if (from.stream === 'stderr') this.lastError = lastLine(text) ?? this.lastError;
      listener(text, from);
      if (this.#count > this.#limitMb * mib) this.#onExcess();
    };
  }
}

function lastLine(text: string): string | undefined {
  return text.split('\n').findLast((line) => line.trim() !== '');
}
