// The messages between a worker and its parent, and the one place that parses them. Frames travel on a
// channel: three int32 (`kind`, `task`, `target`) and a body; the table has the contents of each. `task` is
// a slot of the worker's table of tasks in flight, not a number of the pool. Long (over 400 lines), because each kind
// of message stands with its parser.

import type { MessagePort as Port } from 'node:worker_threads';
import type { ProgramFiles } from '../context/receiving.js';
import { CodedError } from '../errors.js';
import type { GcByKind, GcKind, GcStats, HeapStats } from '../heap/index.js';

/** Both ways. */
export const frame = Object.freeze({
  /** target: definition id; body: the definition's bytes. */
  define: 1,
  /** The peer holds fewer references of a block of ours. body: one packed block reference. */
  release: 2,
  /**
   * Between members: the peer has so many references of a block that came to it through one that has
   * ended. body: as of `release`.
   */
  inherit: 3,
  /** target: a member that has ended; the peer has sent all `inherit` frames for it. */
  transferred: 4,
  /** target: a member that has ended; the peer has received `transferred` from all others. */
  settled: 5,

  /** Parent to worker. First frame of all; body: the URLs of the program, which the worker must not load. */
  program: 9,
  /**
   * Comes next; target: definition id of the set-up function or `noSetup`;
   * body: the values that it captured, empty when they are in the definition.
   */
  setup: 10,
  /** target: definition id of the function; body: the array of arguments. */
  call: 11,
  /** A `call` with the values that the function captured: i32 length, bytes, then arguments. */
  callWithState: 12,
  /** Abort the task's signal. target: 0; inside the worker `abortsNext`. */
  abort: 13,
  /** One chunk of a map. target: definition id of the mapper; body: a `Chunk`. */
  chunk: 15,
  /** The worker may drop a pinned function: no call names it again. target: its definition id. */
  forget: 16,
  /** Requests the worker's memory statistics; `memory` follows when its loop turns. */
  requestMemory: 17,
  /** The report of that number was taken. target: its number. */
  reported: 18,
  /** Requests that the `setup` function is called with `true` before the worker leaves. */
  teardown: 19,
  /** target: the number of a CPU profile; body: its seconds, 0 to give it up. `profiled` follows. */
  profile: 31,
  /** target: how many more items of the stream `task` may be sent; 0 ends it. */
  credit: 14,

  /** Worker to parent. The worker takes tasks; body: [pid, version of Node]. */
  ready: 20,
  /** target: run time in units of 100 ns; body: the result. */
  result: 21,
  /** target: run time; body: the error. */
  error: 22,
  /** The result is a stream: items follow. */
  stream: 23,
  /** body: one item. */
  item: 24,
  /** Set-up failed; body: the error. The worker leaves. */
  startFailed: 25,
  /** Requests a replacement of the worker after its calls in flight: too much memory. */
  retire: 26,
  /**
   * Before `error`. target: for a chunk the index of the failed item, counted from 0; for a stream
   * `failedAtEnd`, when its generator threw while it was ended for its reader.
   */
  failedAt: 27,
  /** body: a `WorkerMemory`. */
  memory: 28,
  /** The worker ends by an uncaught error. body: the error. */
  uncaught: 29,
  /** target: the number of a `profile`; body: a `ProfileAnswer`. */
  profiled: 32,
  /** A value reported by a running task. target: a number for `reported`; body: the value. */
  report: 30,
});

/**
 * Frames that a worker in a partition may send: answers, and facts about itself. Others would bring code, name memory,
 * or use other workers.
 */
export const framesOfPartition: ReadonlySet<number> = new Set([
  frame.ready,
  frame.result,
  frame.error,
  frame.stream,
  frame.item,
  frame.startFailed,
  frame.retire,
  frame.failedAt,
  frame.memory,
  frame.uncaught,
  frame.report,
]);

/** Replaces a definition id: the pool has no set-up function. */
export const noSetup = -1;

/** Target of an abort that a worker has moved before its call: the next call of that slot never begins. */
export const abortsNext = 1;

/** Target of `failedAt` for a stream. */
export const failedAtEnd = 0;

/** Number of items that a streaming task may send before its reader grants more. */
export const streamLeadItems = 16;

/** Units of run time in a millisecond: a unit is 100 ns. */
export const runTimeUnitsPerMs = 10_000;

/** Start parameters of a worker, as JSON in its arguments or as `workerData`. */
export interface WorkerTicket {
  readonly workerId: number;
  readonly parentPid: number;
  /** Thread id in the system of the worker thread that started it; 0 for the main thread, or unknown. */
  readonly parentThread: number;
  /** The ticket of the channel; `channels/` parses it. */
  readonly channel: unknown;
  /** The program's transactional memory, inherited; a thread has that of its process. */
  readonly spaceFd?: number | undefined;
  readonly concurrentTasks: number;
  /**
   * Resident memory above which the worker requests its replacement, in bytes; for a thread its heap and
   * buffers. 0: never.
   */
  readonly maxRssBytes: number;
  /** Cores to pin to; empty: none. */
  readonly pinnedCores: readonly number[];
  /** Added to the nice value of the program. */
  readonly niceIncrement: number;
  /** The words of a thread's `Loads`. */
  readonly loads: SharedArrayBuffer | undefined;
  /** A thread's end of the path for `Parcels`. */
  readonly parcels?: Port | undefined;
  /** True: it is in a partition, where process numbers are others, and sends nothing but data. */
  readonly isPartition?: boolean;
}

/** Parses the body of `program`. */
export function parseProgram(value: unknown): ProgramFiles {
  if (typeof value !== 'object' || value === null || !('urls' in value && 'main' in value)) {
    throw malformed('no files of the program', value);
  }
  const { urls, main } = value;
  if (!Array.isArray(urls)) throw malformed('no URLs of the program', urls);
  return {
    urls: urls.filter((entry) => typeof entry === 'string'),
    main: typeof main === 'string' ? main : '',
  };
}

/** Parses the ticket that a worker's entry got. Throws `WORKER_PROTOCOL`. */
export function parseTicket(value: unknown): WorkerTicket {
  if (typeof value !== 'object' || value === null) throw malformed('no ticket', value);
  const fields = new Map(Object.entries(value));
  return {
    workerId: numberField(fields, 'workerId'),
    parentPid: numberField(fields, 'parentPid'),
    parentThread: numberField(fields, 'parentThread'),
    channel: fields.get('channel'),
    spaceFd: fields.has('spaceFd') ? numberField(fields, 'spaceFd') : undefined,
    concurrentTasks: numberField(fields, 'concurrentTasks'),
    maxRssBytes: numberField(fields, 'maxRssBytes'),
    pinnedCores: numbersField(fields, 'pinnedCores'),
    niceIncrement: numberField(fields, 'niceIncrement'),
    loads: loadsField(fields),
    parcels: parcelsField(fields),
    isPartition: fields.get('isPartition') === true,
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

function parcelsField(fields: ReadonlyMap<string, unknown>): Port | undefined {
  const value = fields.get('parcels');
  return value === undefined || !(value instanceof MessagePort) ? undefined : value;
}

/** Parses the parcel in `message`; without values it is no longer needed. Throws `TRANSFER_CORRUPT`. */
export function parseParcel(message: unknown): {
  readonly id: number;
  readonly values: readonly unknown[] | undefined;
} {
  const [id, values]: unknown[] = Array.isArray(message) ? message : [];
  if (typeof id !== 'number' || (values !== undefined && !Array.isArray(values))) {
    throw new CodedError('TRANSFER_CORRUPT', 'the message beside a frame is not a parcel');
  }
  return { id, values };
}

function malformed(what: string, value: unknown): CodedError {
  return new CodedError(
    'WORKER_PROTOCOL',
    `the worker was started with ${what} (${typeof value}): only manycore may start its entry`,
  );
}

/** Facts that a worker sends when it is ready. */
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

/** Memory statistics of a worker. */
export interface WorkerMemory {
  /** By the worker's own clock: of two, the later one is the newer. */
  readonly atMs: number;
  readonly heap: HeapStats;
  /** Since the first request. */
  readonly gc: GcByKind;
}

export function parseMemory(value: unknown): WorkerMemory {
  const fields = fieldsOf(value, 'memory');
  const heap = fieldsOf(fields.get('heap'), 'heap');
  const gc = fieldsOf(fields.get('gc'), 'pauses');
  const pauses = (kind: GcKind): GcStats => {
    const fields = fieldsOf(gc.get(kind), kind);
    return {
      count: numberField(fields, 'count'),
      totalMs: numberField(fields, 'totalMs'),
      maxMs: numberField(fields, 'maxMs'),
    };
  };
  return {
    atMs: numberField(fields, 'atMs'),
    heap: {
      usedBytes: numberField(heap, 'usedBytes'),
      totalBytes: numberField(heap, 'totalBytes'),
      limitBytes: numberField(heap, 'limitBytes'),
      externalBytes: numberField(heap, 'externalBytes'),
    },
    gc: {
      minor: pauses('minor'),
      major: pauses('major'),
      incremental: pauses('incremental'),
      weakCallbacks: pauses('weakCallbacks'),
    },
  };
}

/** Items by their places: an array, or a typed array. */
export interface Cells {
  [at: number]: unknown;
  readonly length: number;
}

interface TypedCells extends Cells {
  subarray(start: number, end: number): TypedCells;
}

/** In a frame: `Chunk.into` is `Chunk.items`. */
const inPlace = 'items';
const chunkInputs = ['items', 'pairs'] as const;
const chunkOutputs = ['list', 'stream', 'settled', 'kept', 'fill', 'fold', 'combined'] as const;

/** Items that are mapped one after the other in one worker; as arguments of a call: `[chunk]`. */
export interface Chunk {
  /** `pairs`: the mapper has the items, and `start` is the number of a pair. */
  readonly input: (typeof chunkInputs)[number];
  /**
   * Kind of the answer. `list`: the results; `stream`: also those before an item that failed; `settled`:
   * outcomes as of `Promise.allSettled`; `kept`: indices of the items for which the mapper returned true,
   * counted from 0; `fill`: nothing or a typed array (`into`); `fold`: one combined value of mapped items;
   * `combined`: one of such values.
   */
  readonly output: (typeof chunkOutputs)[number];
  /** Index of the first item in the input of the map. */
  readonly start: number;
  readonly count: number;
  /** Time after which no item is begun, in ms. */
  readonly budgetMs: number;
  /** Item `at` of the chunk is `items[offset + at]`. */
  readonly items: Cells;
  readonly offset: number;
  /** Index of each item, if they are not consecutive. */
  readonly indices: Cells | undefined;
  /**
   * For `fill`: result `at` goes to `into[start + at]`. A string is the name of a class of typed arrays, to
   * answer with one.
   */
  readonly into: Cells | string;
}

export interface ChunkAnswer {
  /** Number of mapped items; the others were not begun. */
  readonly done: number;
  readonly value: unknown;
  readonly ranMs: number;
  /** Error that ended a `stream` after its first item: the mapper failed for item `done`. */
  readonly failed?: { readonly error: unknown } | undefined;
}

/** Returns the arguments of a `chunk` frame: `parseChunk` reads them. */
export function chunkArgs(chunk: Chunk): [Chunk] {
  return [chunk.into === chunk.items ? { ...chunk, into: inPlace } : chunk];
}

/** Parses the name that a worker sends beside a chunk of its own map. */
export function parseChunkName(value: unknown): string {
  const [, name]: unknown[] = Array.isArray(value) ? value : [];
  if (typeof name !== 'string') throw malformed('no name of a chunk', name);
  return name;
}

export function parseChunk(value: unknown): Chunk {
  const [given]: unknown[] = Array.isArray(value) ? value : [];
  if (typeof given !== 'object' || given === null) throw malformed('no chunk', given);
  const fields = new Map(Object.entries(given));
  const indices = fields.get('indices');
  const isInPlace = fields.get('into') === inPlace;
  const items = cells(fields.get('items'));
  const into = isInPlace ? items : fields.get('into');
  return {
    input: wordField(fields, 'input', chunkInputs),
    output: wordField(fields, 'output', chunkOutputs),
    start: numberField(fields, 'start'),
    count: numberField(fields, 'count'),
    budgetMs: numberField(fields, 'budgetMs'),
    items,
    offset: numberField(fields, 'offset'),
    indices: indices === undefined ? undefined : cells(indices),
    into: typeof into === 'string' ? into : cells(into),
  };
}

export function parseChunkAnswer(value: unknown): ChunkAnswer {
  if (typeof value !== 'object' || value === null) throw malformed('no answer', value);
  const fields = new Map(Object.entries(value));
  return {
    done: numberField(fields, 'done'),
    value: fields.get('value'),
    ranMs: numberField(fields, 'ranMs'),
    failed: failedField(fields.get('failed')),
  };
}

function failedField(value: unknown): ChunkAnswer['failed'] {
  const isOne = typeof value === 'object' && value !== null && 'error' in value;
  return isOne ? { error: value.error } : undefined;
}

function wordField<T extends string>(
  fields: ReadonlyMap<string, unknown>,
  name: string,
  words: readonly T[],
): T {
  const value = fields.get(name);
  const word = words.find((each) => each === value);
  if (word === undefined) throw malformed(`no ${name}`, value);
  return word;
}

function cells(value: unknown): Cells {
  const isCells = Array.isArray(value) || (ArrayBuffer.isView(value) && 'length' in value);
  if (!isCells) throw malformed('no items', value);
  return value as unknown as Cells;
}

/** Returns a typed array of the class with this name: with that many zeros, or over a buffer. */
export function newArray(name: string, from: number | ArrayBufferLike): TypedCells {
  const isOne = /^(?:Big)?(?:Int|Uint|Float)\d+(?:Clamped)?Array$/.test(name);
  const Class: unknown = isOne ? Reflect.get(globalThis, name) : undefined;
  if (typeof Class !== 'function') throw malformed('no class of typed arrays', name);
  return Reflect.construct(Class, [from]) as TypedCells;
}

/** Parses the result of the mapper of pairs: the items, and the function for two of them. */
export function parsePairs(value: unknown): { items: Cells; map: (...args: unknown[]) => unknown } {
  const fields = fieldsOf(value, 'parts of a map');
  return { items: cells(fields.get('items')), map: functionField(fields, 'map') };
}

/** Parses the result of the mapper of a reduction. */
export function parseFold(value: unknown): {
  map: (...args: unknown[]) => unknown;
  combine: (...args: unknown[]) => unknown;
} {
  const fields = fieldsOf(value, 'parts of a map');
  return { map: functionField(fields, 'map'), combine: functionField(fields, 'combine') };
}

function fieldsOf(value: unknown, what: string): ReadonlyMap<string, unknown> {
  if (typeof value !== 'object' || value === null) throw malformed(`no ${what}`, value);
  return new Map(Object.entries(value));
}

function functionField(
  fields: ReadonlyMap<string, unknown>,
  name: string,
): (...args: unknown[]) => unknown {
  const value = fields.get(name);
  if (typeof value !== 'function') throw malformed(`no function ${name}`, value);
  return value as (...args: unknown[]) => unknown;
}
