// The parent's handle of a worker that is a thread of this process: the same entry, the same frames, its
// own heap. Cheaper to start than a process on older Nodes; a crash in native code takes the whole process
// along, so processes are the default.

import { type WorkerOptions as ThreadOptions, Worker } from 'node:worker_threads';
import type { ChannelOffer } from '../../channels/index.js';
import { CodedError } from '../../errors.js';
import { defer, errorOf, messageOf, ownOf } from '../../lib/index.js';
import { Loads } from '../both/loads.js';
import { noteEnd, sharedMemoryProblem } from '../both/shared-memory.js';
import { afterThreadEnds, beforeThreadEnds, threadSpace } from '../both/thread-space.js';
import type { WorkerTicket } from '../protocol.js';
import type { WorkerExit, WorkerHandle, WorkerOptions } from '../types.js';
import { entryFile } from './entry-file.js';
import { inheritedEnvironment, mustNotRepeat, threadFlags } from './flags.js';
import { afterOutput, listenToOutput, type Output } from './output.js';

/**
 * Starts a worker thread; throws `WORKER_START_FAILED` for flags that a thread cannot have, or without a
 * program.
 */
export function startThread(
  ticket: WorkerTicket,
  offer: ChannelOffer,
  options: WorkerOptions,
): WorkerHandle {
  const entryPath = entryFile();
  try {
    const threadOptions: ThreadOptions = {
      name: 'manycore worker', // name of the thread in the system, from Node 22 on
      workerData: ticket,
      transferList: [...offer.transfer, ...(ticket.parcels === undefined ? [] : [ticket.parcels])],
      env: withoutUndefined(inheritedEnvironment({ ...process.env, ...options.env })),
      ...((options.execArgv.length > 0 || mustNotRepeat(process.execArgv)) && {
        execArgv: [...threadFlags(process.execArgv), ...options.execArgv],
      }),
      ...(options.onOutput !== undefined && { stdout: true, stderr: true }),
      ...(options.maxHeapMb > 0 && {
        resourceLimits: ownOf({ maxOldGenerationSizeMb: options.maxHeapMb }),
      }),
    };
    prepareThreadSpace();
    const worker = new Worker(entryPath, ownOf(threadOptions));
    worker.unref();
    const { onOutput } = options;
    const { stdout, stderr } = worker;
    const output = onOutput && listenToOutput(stdout, stderr, ticket.workerId, onOutput);
    return new ThreadHandle(worker, new Loads(ticket.loads), output);
  } catch (error) {
    throw new CodedError(
      'WORKER_START_FAILED',
      `a worker thread could not be started: ${messageOf(error)}`,
      { cause: error },
    );
  }
}

/** Makes the memory that threads share without the native core, before one starts: it has what there is then. */
function prepareThreadSpace(): void {
  if (sharedMemoryProblem()?.code !== 'NATIVE_MISSING') return;
  try {
    threadSpace();
  } catch {
    // The first variable throws it: a program may have none.
  }
}

/**
 * Removes undefined variables: a thread would have the text `undefined`; a process has no such variable.
 */
function withoutUndefined(env: Readonly<Record<string, string | undefined>>): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined));
}

class ThreadHandle implements WorkerHandle {
  readonly kind = 'thread';
  readonly pid = process.pid;
  readonly threadId: number;
  readonly pipe = undefined;
  readonly exited: Promise<WorkerExit>;
  readonly #worker: Worker;
  readonly #loads: Loads;
  #error: Error | undefined;
  #hasEnded = false;

  constructor(worker: Worker, loads: Loads, output: Output | undefined) {
    this.#worker = worker;
    this.#loads = loads;
    worker.once('error', (error: unknown) => {
      this.#error = errorOf(error);
    });
    const { promise, resolve } = defer<WorkerExit>();
    this.exited = promise;
    const { threadId } = worker;
    this.threadId = threadId;
    worker.once('exit', (exitCode) => {
      this.#hasEnded = true;
      noteEnd();
      afterThreadEnds(threadId);
      afterOutput(output, () => resolve({ exitCode, signal: null, error: this.#error }));
    });
  }

  ref(): void {
    this.#worker.ref();
  }

  terminate(): void {
    this.#loads.whenSafe(
      () => {
        beforeThreadEnds(this.#worker.threadId);
        void this.#worker.terminate();
      },
      () => this.#hasEnded,
    );
  }

  kill(): void {
    this.terminate();
  }
}
