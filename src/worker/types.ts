// The operating system's side of a worker: a process or a thread behind one interface. What travels
// to and from it is in link.ts; what it does inside is in entry.ts and runner.ts.

import type { Duplex } from 'node:stream';
import type { ChannelKind } from '../channels/index.js';
import type { AnyFunction, FunctionSnapshot } from '../context/index.js';
import type { NestedOwner } from './nested.js';
import type { OutputListener } from './output.js';
import type { WorkerTicket } from './protocol.js';
import type { SharedWorkers } from './shared-workers.js';

export type WorkerKind = 'process' | 'thread';

/** How a worker ended. Both `undefined` and 0 of `exitCode` are real: a signal, and a plain exit. */
export interface WorkerExit {
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** Why it could not start, or why it ended: an error that nothing caught, a lost machine. */
  readonly error: Error | undefined;
  /** `error` was thrown in it where nothing caught it. Default false. */
  readonly isUncaught?: boolean;
}

export interface WorkerHandle {
  readonly kind: WorkerKind;
  /** For a thread: our own. */
  readonly pid: number | undefined;
  /** The parent's end of the pipe at descriptor 3, when the channel asked for one. */
  readonly pipe: Duplex | undefined;
  /** Called once. */
  onExit: (exit: WorkerExit) => void;
  /** Called when it is to get nothing more, and to leave after what it has. */
  onRetire: () => void;
  /** Asks it to leave (SIGTERM; a thread is terminated). */
  terminate(): void;
  /** It begins when there is room for it, whenever that is. Default: it begins at once. */
  readonly isWaiting?: boolean;
  /** Keeps the event loop alive until it has ended. */
  ref(): void;
  /** Ends it now (SIGKILL; a thread is terminated). */
  kill(): void;
}

/** Of a call that is kept until it has run somewhere. */
export interface DurableOptions {
  /** Of two calls with one id only the first runs, and both have its result. Default: one of its own. */
  readonly id: string | undefined;
  readonly timeoutMs: number;
  readonly retry: number;
  readonly signal: AbortSignal | undefined;
}

/** Where workers come from that run on other machines. */
export interface RemoteWorkers {
  /** Throws `CLUSTER_CLOSED`, or `CLUSTER_UNSIGNED` where functions cannot be sent. */
  check(): void;
  runDurably(fn: AnyFunction, args: unknown[], options: DurableOptions): Promise<unknown>;
  /** Its `pipe` is there at once; it carries what a socket would. */
  start(ticket: WorkerTicket, options: WorkerOptions): WorkerHandle;
}

/** What the user may say of how workers run. */
export interface WorkerOptions {
  readonly kind: WorkerKind;
  /** Flags of Node for the worker, after those that this process was started with. */
  readonly execArgv: readonly string[];
  /** Environment variables on top of this process's own. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Limit of the old generation of V8's heap in MiB; 0: V8's own. */
  readonly maxHeapMb: number;
  /** Gets what the worker writes; `undefined`: it goes where this process's own goes. */
  readonly onOutput: OutputListener | undefined;
}

/** What a worker is started with. */
export interface WorkerSettings extends WorkerOptions {
  readonly channel: ChannelKind;
  readonly spin: boolean;
  readonly setup: FunctionSnapshot | undefined;
  /** `setup` is called with `true` before the worker leaves. */
  readonly hasTeardown: boolean;
  readonly concurrentTasks: number;
  /** After so many it is to be replaced; `Infinity`: never. */
  readonly maxTasksPerWorker: number;
  readonly maxRssBytes: number;
  readonly pinnedCores: readonly number[];
  readonly startTimeoutMs: number;
  /** Who finds workers for maps that run inside this one. */
  readonly nested: NestedOwner;
  /** Instead of a process of its own, a lease in one of these. */
  readonly shared: SharedWorkers | undefined;
  /** Instead of a process of this machine, one of another. */
  readonly remote: RemoteWorkers | undefined;
}
