// Events of manycore on `node:diagnostics_channel`: one name and one message type for each event. The names are
// API. On hot paths check `hasSubscribers` first and build no message without subscribers.
// `NODE_DEBUG=manycore` prints all of them. Not here: other printing, and counting (the command line, stats of
// the pool).

import { channel } from 'node:diagnostics_channel';
import { debuglog, inspect } from 'node:util';

/** One diagnostics channel with the type of its messages. */
export interface Announcement<Message> {
  readonly name: string | symbol;
  readonly hasSubscribers: boolean;
  publish(message: Message): void;
  /** As Node's channels: `unsubscribe` with the same function ends it. */
  subscribe(onMessage: (message: unknown) => void): void;
  unsubscribe(onMessage: (message: unknown) => void): unknown;
}

/** Times are in ms; `task`, `worker` and `pool` are numbers that are not given twice in a process. */
export interface TaskMessage {
  readonly pool: number;
  readonly task: number;
  /** The function's name, `''` when it has none. */
  readonly name: string;
}

export interface TaskQueuedMessage extends TaskMessage {
  /** Tasks that wait, this one included. */
  readonly waitingTasks: number;
}

export interface TaskStartMessage extends TaskMessage {
  /** The worker that runs it; 0 when it runs inline, in the caller. */
  readonly worker: number;
  readonly waitedMs: number;
}

export interface TaskEndMessage extends TaskMessage {
  readonly worker: number;
  readonly ranMs: number;
}

export interface TaskErrorMessage extends TaskEndMessage {
  readonly error: unknown;
}

export interface WorkerMessage {
  readonly worker: number;
  readonly kind: 'process' | 'thread' | 'sandbox' | 'vm';
  /**
   * The process in which it runs; for a thread our own, for a partition the one outside of it. `undefined` before it
   * has one.
   */
  readonly pid: number | undefined;
}

export interface WorkerReadyMessage extends WorkerMessage {
  /** From the start to the acknowledgement. */
  readonly startedInMs: number;
}

export interface WorkerExitMessage extends WorkerMessage {
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** True: we asked it to leave, or ended it. */
  readonly isExpected: boolean;
  /** The error that nothing caught in it; `undefined`: none is known. */
  readonly error: Error | undefined;
}

/**
 * Limits of a partition: `memory` and `tasks` (processes and threads) are the kernel's, `output`, `result` (the size of
 * a value), `data` (code in place of data) and `protocol` (frames that no honest worker sends) are manycore's.
 */
export type WorkerLimit = 'memory' | 'tasks' | 'output' | 'result' | 'data' | 'protocol';

/** A partition was ended for a limit; `tasks`: it was refused some, and then ended by itself. */
export interface WorkerLimitMessage extends WorkerMessage {
  readonly limit: WorkerLimit;
  /** In words, with the name of the option. */
  readonly reason: string;
}

export interface WorkerRestartMessage extends WorkerMessage {
  /** Failed starts and exits in a row, from 1. */
  readonly attempt: number;
  readonly delayMs: number;
}

export interface PoolMessage {
  readonly pool: number;
}

export interface PoolResizeMessage extends PoolMessage {
  readonly workersBefore: number;
  readonly workersWanted: number;
}

/** Workers of a pool do not start: once for each wave of starts that failed, while it lasts. */
export interface PoolDegradedMessage extends PoolMessage {
  /** Waves of starts that failed since the last one that worked; workers that start together are one wave. */
  readonly failedStarts: number;
  /** Since the first of them. */
  readonly degradedMs: number;
  /** The message of the last failure. */
  readonly reason: string;
  /** Until the next start. */
  readonly delayMs: number;
  readonly waitingTasks: number;
}

/** Workers of a pool start again. */
export interface PoolRecoveredMessage extends PoolMessage {
  readonly degradedMs: number;
}

/** A process of a server that ended, or lost a loop, without having been asked to. */
export interface ServerLostMessage {
  readonly pid: number | undefined;
  /** The loop that is lost alone, and started again in its process. */
  readonly loop?: number;
  readonly why: string;
  /**
   * Stack of the error that the program threw in a thread; `undefined` where the output of the server is read
   * (`onOutput`), and has it.
   */
  readonly stack: string | undefined;
  /** Until another is started, in ms; `undefined`: none is any more. */
  readonly delayMs: number | undefined;
}

/** A server whose processes were all replaced, or that has another size. */
export interface ServerChangedMessage {
  /** The name of its server. */
  readonly name: string;
  /** The path of its program. */
  readonly app: string;
  /** Processes that serve now. */
  readonly pids: readonly number[];
}

/** A reload by schedule has failed: its processes serve on as they were. */
export interface ServerReloadFailedMessage {
  /** The name of its server. */
  readonly name: string;
  /** The path of its program. */
  readonly app: string;
  readonly why: string;
  /** Stack of the error that the program threw. */
  readonly stack: string | undefined;
}

/** A process of a server has no descriptor left: connections wait until some are closed. */
export interface ServerExhaustedMessage {
  readonly pid: number | undefined;
  /** Descriptors that it may have open; `undefined` when unknown. */
  readonly limit: number | undefined;
}

/** A process of a server has had descriptors for all connections again, for three seconds. */
export interface ServerRecoveredMessage {
  readonly pid: number | undefined;
  /** Time for which it had none, in ms. */
  readonly exhaustedMs: number;
}

/** The program of a server that has started listens on one more address. */
export interface ServerListeningMessage {
  /** The name of its server. */
  readonly name: string;
  /** The path of its program. */
  readonly app: string;
  /** A path, or address and port. */
  readonly address:
    | string
    | { readonly address: string; readonly port: number; readonly family: 'IPv4' | 'IPv6' };
}

/** In a program that is served: its loop takes no more connections, and is to end what it has. */
export interface ServerDrainMessage {
  /** From now on, in ms; SIGTERM follows when nothing is open any more, or then. */
  readonly deadlineMs: number;
}

/** A loop that was to be added to a process of a server, which serves on without it. */
export interface ServerLoopFailedMessage {
  readonly pid: number | undefined;
  /** Index of the loop in its process. */
  readonly loop: number;
  readonly why: string;
  /** Stack of the error that the program threw. */
  readonly stack: string | undefined;
}

/** A loop of a server that does not come back from a callback. */
export interface ServerBlockedMessage {
  readonly pid: number | undefined;
  /** Index of the loop in its process. */
  readonly loop: number;
  readonly blockedMs: number;
  /** Place in the code, as `file:///app/app.js:12:3`; `undefined` when unknown, as in native code. */
  readonly place: string | undefined;
  /** As in `Error.stack`. */
  readonly stack: string | undefined;
}

/** A message that nobody waits for is lost; where too many wait at a consumer, the first of them. */
export interface BusDroppedMessage {
  /** `undefined` where what came cannot be read. */
  readonly address: string | undefined;
  readonly why: string;
}

/** A handler of the bus threw, or rejected, and no requester waits for its answer. */
export interface BusHandlerFailedMessage {
  readonly address: string;
  /** Name of the unit whose handler it is; `undefined` for one of the program around the loops. */
  readonly unit: string | undefined;
  /** `BUS_HANDLER_ERROR`, its `cause` is what the handler threw. */
  readonly error: Error;
}

/** The connection to the NATS server of a cluster is lost; it is tried again. */
export interface ClusterLostMessage {
  /** Messages that may not have reached the server. */
  readonly unconfirmed: number;
}

/** A message from or to a cluster was refused. */
export interface ClusterRefusedMessage {
  readonly why: string;
}

/** A loop with units on it that does not come back from a callback. */
export interface UnitBlockedMessage {
  readonly pid: number;
  /** The number of the loop. */
  readonly loop: number;
  /** The deployments whose module is on the stack; where none is, all that have instances there. */
  readonly units: readonly string[];
  readonly blockedMs: number;
  /** As in `ServerBlockedMessage`, of a unit that is known the innermost in its module. */
  readonly place: string | undefined;
  /** As in `ServerBlockedMessage`. */
  readonly stack: string | undefined;
}

/** Instances of a unit have ended their process or thread, or could not be started again. */
export interface UnitLostMessage {
  /** The name of the deployment, and its number. */
  readonly unit: string;
  readonly deployment: number;
  /** The numbers of the instances. */
  readonly instances: readonly number[];
  readonly why: string;
  /** Stack of the error that its code threw in a thread or at a start; `undefined`: none is known. */
  readonly stack: string | undefined;
  /** `again`: it is started again. `never`: its restarts within the period are used up. */
  readonly next: 'again' | 'never';
  /** Until it is started again, in ms; `undefined`: it is not, or there is no delay. */
  readonly delayMs: number | undefined;
}

/** Instances of a unit are given up. */
export interface UnitFailedMessage {
  /** The name of the deployment, and its number. */
  readonly unit: string;
  readonly deployment: number;
  /** The numbers of the instances. */
  readonly instances: readonly number[];
  /** `UNIT_FAILED`. */
  readonly error: Error;
}

/** An instance was started again after its file was edited: it has another version than the others. */
export interface UnitVersionChangedMessage {
  /** The name of the deployment, and its number. */
  readonly unit: string;
  readonly deployment: number;
  readonly instance: number;
  /** Short hashes: of the deployment, and of this instance. */
  readonly deployed: string;
  readonly version: string;
}

/** Everything that is announced; the key is how code names it, the string how a listener does. */
export const announcements = {
  taskQueued: announce<TaskQueuedMessage>('manycore:task:queued'),
  taskStart: announce<TaskStartMessage>('manycore:task:start'),
  taskEnd: announce<TaskEndMessage>('manycore:task:end'),
  taskError: announce<TaskErrorMessage>('manycore:task:error'),
  workerStart: announce<WorkerMessage>('manycore:worker:start'),
  workerReady: announce<WorkerReadyMessage>('manycore:worker:ready'),
  workerExit: announce<WorkerExitMessage>('manycore:worker:exit'),
  workerLimit: announce<WorkerLimitMessage>('manycore:worker:limit'),
  workerRestart: announce<WorkerRestartMessage>('manycore:worker:restart'),
  poolOpen: announce<PoolMessage>('manycore:pool:open'),
  poolResize: announce<PoolResizeMessage>('manycore:pool:resize'),
  poolClose: announce<PoolMessage>('manycore:pool:close'),
  poolDegraded: announce<PoolDegradedMessage>('manycore:pool:degraded'),
  poolRecovered: announce<PoolRecoveredMessage>('manycore:pool:recovered'),
  serverBlocked: announce<ServerBlockedMessage>('manycore:server:blocked'),
  serverDrain: announce<ServerDrainMessage>('manycore:server:drain'),
  serverLoopFailed: announce<ServerLoopFailedMessage>('manycore:server:loop-failed'),
  serverLost: announce<ServerLostMessage>('manycore:server:lost'),
  busDropped: announce<BusDroppedMessage>('manycore:bus:dropped'),
  busHandlerFailed: announce<BusHandlerFailedMessage>('manycore:bus:handler-failed'),
  clusterLost: announce<ClusterLostMessage>('manycore:cluster:lost'),
  clusterBack: announce<Readonly<Record<string, never>>>('manycore:cluster:back'),
  clusterRefused: announce<ClusterRefusedMessage>('manycore:cluster:refused'),
  unitBlocked: announce<UnitBlockedMessage>('manycore:unit:blocked'),
  unitLost: announce<UnitLostMessage>('manycore:unit:lost'),
  unitFailed: announce<UnitFailedMessage>('manycore:unit:failed'),
  unitVersionChanged: announce<UnitVersionChangedMessage>('manycore:unit:version-changed'),
  serverReloadFailed: announce<ServerReloadFailedMessage>('manycore:server:reload-failed'),
  serverExhausted: announce<ServerExhaustedMessage>('manycore:server:exhausted'),
  serverRecovered: announce<ServerRecoveredMessage>('manycore:server:recovered'),
  serverReloaded: announce<ServerChangedMessage>('manycore:server:reloaded'),
  serverScaled: announce<ServerChangedMessage>('manycore:server:scaled'),
  serverListening: announce<ServerListeningMessage>('manycore:server:listening'),
} as const;

function announce<Message>(name: `manycore:${string}:${string}`): Announcement<Message> {
  return channel(name);
}

/** `NODE_DEBUG=manycore`: a line on standard error for each event (docs: `util.debuglog`). */
const debug = debuglog('manycore');
if (debug.enabled) {
  for (const each of Object.values(announcements)) {
    const print = (message: unknown): void => {
      debug('%s %s', String(each.name), inspect(message, { breakLength: Infinity }));
    };
    each.subscribe(print);
  }
}
