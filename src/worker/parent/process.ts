// The parent's handle of a worker that is a process: started by `spawn` and not by `fork`, because our own
// channel is at descriptor 3 and up. Its stdout and stderr are this process's own, so that no output is
// lost at its end and none passes through our event loop, unless the pool has `onOutput`.
// Not here: its program (entry.ts), its frames (link.ts).

import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { Duplex } from 'node:stream';
import { minBlockingThreads, withBlockingThreads } from '../../blocking-pool/index.js';
import type { ChannelOffer } from '../../channels/index.js';
import { defer, jsonOf, ownOf } from '../../lib/index.js';
import { noteEnd, spaceFd } from '../both/shared-memory.js';
import type { WorkerTicket } from '../protocol.js';
import type { WorkerExit, WorkerHandle, WorkerOptions } from '../types.js';
import { entryFile } from './entry-file.js';
import { inheritedEnvironment, inheritedFlags } from './flags.js';
import { afterOutput, listenToOutput, type Output } from './output.js';

/** Descriptors of the channel begin here. */
const firstChannelFd = 3;

/**
 * Starts a worker process; a start that the system refuses is an exit with the error. Throws
 * `WORKER_START_FAILED` when there is no program to start.
 */
export function startProcess(
  ticket: WorkerTicket,
  offer: ChannelOffer,
  options: WorkerOptions,
): WorkerHandle {
  const entryPath = entryFile();
  const flags = [...inheritedFlags(process.execArgv), ...options.execArgv];
  if (options.maxHeapMb > 0) flags.push(`--max-old-space-size=${options.maxHeapMb}`);
  const output = options.onOutput === undefined ? 'inherit' : 'pipe';
  const space = spaceFd();
  // No prototype: Node would take variables from the prototype of `env`.
  const spawnOptions: SpawnOptions = {
    stdio: ['ignore', output, output, ...offer.stdio, ...(space === undefined ? [] : [space])],
    env: ownOf(
      inheritedEnvironment({
        ...withBlockingThreads(process.env, minBlockingThreads),
        ...options.env,
      }),
    ),
    windowsHide: true,
  };
  const passed = {
    ...ticket,
    spaceFd: space === undefined ? space : firstChannelFd + offer.stdio.length,
  };
  const args = [...flags, entryPath, jsonOf(passed)];
  const child = spawn(process.execPath, args, ownOf(spawnOptions));
  child.unref();
  const { onOutput } = options;
  const { stdout, stderr } = child;
  return new ProcessHandle(
    child,
    onOutput && listenToOutput(stdout ?? null, stderr ?? null, ticket.workerId, onOutput),
  );
}

/** The common half of handles of child processes. `pipeFd`: the descriptor of the channel, if it needs a pipe. */
export abstract class ChildHandle implements WorkerHandle {
  readonly kind = 'process';
  readonly pipe: Duplex | undefined;
  abstract readonly exited: Promise<WorkerExit>;
  readonly #child: ChildProcess;

  constructor(child: ChildProcess, pipeFd: number) {
    this.#child = child;
    // Without a descriptor left, spawn gives a child that has no stdio at all, then its error.
    const pipe = Array.isArray(child.stdio) ? child.stdio[pipeFd] : undefined;
    this.pipe = pipe instanceof Duplex ? pipe : undefined;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  ref(): void {
    this.#child.ref();
  }

  terminate(): void {
    this.#child.kill('SIGTERM');
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}

class ProcessHandle extends ChildHandle {
  readonly exited: Promise<WorkerExit>;

  constructor(child: ChildProcess, output: Output | undefined) {
    super(child, firstChannelFd);
    const { promise, resolve } = defer<WorkerExit>();
    this.exited = promise;
    child.once('error', (error) => {
      if (child.pid === undefined) resolve({ exitCode: null, signal: null, error });
    });
    child.once('exit', (exitCode, signal) => {
      noteEnd();
      afterOutput(output, () => resolve({ exitCode, signal, error: undefined }));
    });
  }
}
