// What a host and its parent say to each other, and the one place that parses it. Frames travel on a
// channel: three int32 (`kind`, `task`, `target`) and a body; the table says what each holds.
// `task` is a slot of the host's table of tasks in flight, not a number of the pool.

import { CodedError } from '../errors.js';

/** Both ways. */
export const frame = Object.freeze({
  /** target: definition id; body: the definition's bytes. */
  define: 1,
  /** The peer holds fewer references of a block of ours. body: one packed block reference. */
  release: 2,

  /**
   * Parent to host. First frame of all; target: definition id of the set-up function or `noSetup`;
   * body: the values that it captured, empty when they are in the definition.
   */
  setup: 10,
  /** target: definition id of the function; body: the array of arguments. */
  call: 11,
  /** As `call`, with the values that the function captured: i32 length, bytes, then arguments. */
  callWithState: 12,
  /** Abort the task's signal. */
  abort: 13,
  /** target: how many more items of the stream `task` may be sent; 0 ends it. */
  credit: 14,

  /** Host to parent. The host takes tasks; body: [pid, version of Node]. */
  ready: 20,
  /** target: run time in units of 100 ns; body: the result. */
  result: 21,
  /** target: run time; body: the error. */
  error: 22,
  /** The result is a stream: items follow. */
  stream: 23,
  /** body: one item. */
  item: 24,
  /** Set-up failed; body: the error. The host leaves. */
  startFailed: 25,
  /** The host asks to be replaced after what it has in flight: too much memory. */
  retire: 26,
});

/** In place of a definition id: the pool has no set-up function. */
export const noSetup = -1;

/** Items that a streaming task may send before its reader asks for more. */
export const streamLeadItems = 16;

/** How many units of run time a millisecond has: a unit is 100 ns. */
export const runTimeUnitsPerMs = 10_000;

/** What a host is told when it is started, as JSON in its arguments or as `workerData`. */
export interface HostTicket {
  readonly hostId: number;
  readonly parentPid: number;
  /** The system's number of the worker thread that started it; 0 for the main thread, or unknown. */
  readonly parentThread: number;
  /** The ticket of the channel; `channels/` parses it. */
  readonly channel: unknown;
  readonly concurrentTasks: number;
  /**
   * Resident memory above which the host asks to be replaced, in bytes; of a thread its heap and
   * buffers count. 0: never.
   */
  readonly maxRssBytes: number;
  /** Cores to pin to; empty: none. */
  readonly pinnedCores: readonly number[];
  /** The words of a thread's `Loads`. */
  readonly loads: SharedArrayBuffer | undefined;
}

/** The ticket in `value`, as a host's entry got it; `HOST_PROTOCOL` when it is something else. */
export function parseTicket(value: unknown): HostTicket {
  if (typeof value !== 'object' || value === null) throw malformed('no ticket', value);
  const fields = new Map(Object.entries(value));
  return {
    hostId: numberField(fields, 'hostId'),
    parentPid: numberField(fields, 'parentPid'),
    parentThread: numberField(fields, 'parentThread'),
    channel: fields.get('channel'),
    concurrentTasks: numberField(fields, 'concurrentTasks'),
    maxRssBytes: numberField(fields, 'maxRssBytes'),
    pinnedCores: numbersField(fields, 'pinnedCores'),
    loads: loadsField(fields),
  };
}

function numberField(fields: ReadonlyMap<string, unknown>, name: string): number {
  const value = fields.get(name);
  if (typeof value !== 'number') throw malformed(`no number ${name}`, value);
  return value;
}

function numbersField(fields: ReadonlyMap<string, unknown>, name: string): number[] {
  const value = fields.get(name);
  if (!Array.isArray(value)) throw malformed(`no numbers ${name}`, value);
  return value.filter((entry) => typeof entry === 'number');
}

function loadsField(fields: ReadonlyMap<string, unknown>): SharedArrayBuffer | undefined {
  const value = fields.get('loads');
  return value instanceof SharedArrayBuffer ? value : undefined;
}

function malformed(what: string, value: unknown): CodedError {
  return new CodedError(
    'HOST_PROTOCOL',
    `the host was started with ${what} (${typeof value}): only manycore may start its entry`,
  );
}

/** What a host says of itself when it is ready. */
export interface ReadyMessage {
  readonly pid: number;
  readonly nodeVersion: string;
}

export function parseReady(value: unknown): ReadyMessage {
  if (Array.isArray(value) && typeof value[0] === 'number' && typeof value[1] === 'string') {
    return { pid: value[0], nodeVersion: value[1] };
  }
  throw malformed('no ready message', value);
}
