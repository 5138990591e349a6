// The operating system's side of a worker: a process or a thread behind one interface. Its frames are in
// link.ts; its program is in entry.ts and runner.ts.

import type { Duplex } from 'node:stream';
import type { ChannelKind } from '../channels/index.js';
import type { AnyFunction, FunctionSnapshot } from '../context/receiving.js';
import type { WorkerLimit } from '../lib/index.js';
import type { NestedOwner } from './parent/nested.js';
import type { OutputListener } from './parent/output.js';
import type { SharedWorkers } from './parent/shared-workers.js';
import type { FilledPartition } from './partition/options.js';
import type { WorkerTicket } from './protocol.js';

export type WorkerKind = 'process' | 'thread';
/** The kind in statistics: that of a partition is its own. */
export type ShownKind = WorkerKind | 'sandbox' | 'vm';

/** The end of a worker. Both `undefined` and 0 of `exitCode` are real: a signal, and a plain exit. */
export interface WorkerExit {
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** Reason why it could not start, or why it ended: an uncaught error, a lost machine. */
  readonly error: Error | undefined;
  /** True: `error` was thrown in it and not caught. Default false. */
  readonly isUncaught?: boolean;
  /** The limit of a partition that has ended it. */
  readonly limit?: ReachedLimit | undefined;
  /** The line on stderr that is likely to name the cause; of partitions alone. */
  readonly lastLine?: string | undefined;
}

export interface ReachedLimit {
  readonly name: WorkerLimit;
  /** In words, with the name of the option. */
  readonly reason: string;
}

export interface WorkerHandle {
  readonly kind: WorkerKind;
  /** Process id; for a thread: our own. */
  readonly pid: number | undefined;
  /** Node's number of a thread of this process. */
  readonly threadId?: number;
  /** The parent's end of the pipe at descriptor 3, if the channel needs one. */
  readonly pipe: Duplex | undefined;
  readonly exited: Promise<WorkerExit>;
  /** Requests its end (SIGTERM; a thread is terminated). */
  terminate(): void;
  /** True: it begins when there is room for it, whenever that is. Default: it begins at once. */
  readonly isWaiting?: boolean;
  /** Keeps the event loop alive until it has ended. */
  ref(): void;
  /** Ends it now (SIGKILL; a thread is terminated). */
  kill(): void;
}

/** Options of a durable call, which is kept until it has run on some machine. */
export interface DurableOptions {
  /**
   * The same id makes two calls one: only the first runs, and both have its result. Default: a unique id.
   */
  readonly id: string | undefined;
  readonly timeoutMs: number;
  readonly retry: number;
  readonly signal: AbortSignal | undefined;
}

/** Source of workers that run on other machines. */
export interface RemoteWorkers {
  /** Throws `CLUSTER_CLOSED`, or `CLUSTER_UNSIGNED` if functions cannot be sent. */
  check(): void;
  runDurably(fn: AnyFunction, args: unknown[], options: DurableOptions): Promise<unknown>;
  /**
   * Starts a worker. Its `pipe` is there at once; it carries what a socket would. `onRetire` is called when
   * it is to get nothing more, and to leave after its calls.
   */
  start(ticket: WorkerTicket, options: WorkerOptions, onRetire: () => void): WorkerHandle;
}

/** User options of workers. */
export interface WorkerOptions {
  readonly kind: WorkerKind;
  /** Flags of Node for the worker, after those that this process was started with. */
  readonly execArgv: readonly string[];
  /** Environment variables on top of this process's own. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Limit of the old generation of V8's heap in MiB; 0: V8's own. */
  readonly maxHeapMb: number;
  /** Gets the output of the worker; `undefined`: it goes to this process's own. */
  readonly onOutput: OutputListener | undefined;
  /** The partition of a process whose code is not trusted. */
  readonly partition: FilledPartition | undefined;
}

/** Start settings of a worker. */
export interface WorkerSettings extends WorkerOptions {
  readonly channel: ChannelKind;
  readonly spin: boolean;
  readonly setup: FunctionSnapshot | undefined;
  /** True: `setup` is called with `true` before the worker leaves. */
  readonly hasTeardown: boolean;
  readonly concurrentTasks: number;
  /** Number of tasks after which it is replaced; `Infinity`: never. */
  readonly maxTasksPerWorker: number;
  readonly maxRssBytes: number;
  readonly pinnedCores: readonly number[];
  readonly niceIncrement: number;
  readonly startTimeoutMs: number;
  /** Finds workers for maps that run inside this one. */
  readonly nested: NestedOwner;
  /** Instead of a process of its own, a lease in one of these. */
  readonly shared: SharedWorkers | undefined;
  /** Instead of a process of this machine, one of another. */
  readonly remote: RemoteWorkers | undefined;
}
