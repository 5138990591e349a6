// Names, keys and options of shared data, checked.

import {
  abortSignal,
  integer,
  integerOption,
  invalid,
  number,
  type Readers,
  readOptions,
  string,
} from '../lib/index.js';
import { tooLarge } from './errors.js';

export interface SharedDataOptions {
  /** Limit of each call, in ms: then it rejects with `SHARED_DATA_TIMED_OUT`. Default: 5,000. */
  readonly timeoutMs?: number | undefined;
}

export interface AcquireOptions {
  /**
   * Time in ms for which the lock stays taken when its owner is gone. An owner that lives renews it. Default:
   * 10,000.
   */
  readonly leaseMs?: number | undefined;
  /**
   * Longest wait in ms for the lock; `0` tries once, `Infinity` waits on. Then `acquire` rejects with
   * `SHARED_DATA_TIMED_OUT`. Default: 10,000.
   */
  readonly timeoutMs?: number | undefined;
  /** Ends the wait: `acquire` rejects with `ABORTED`. A lock that was acquired stays. */
  readonly signal?: AbortSignal | undefined;
}

export interface SharedMapWatchOptions {
  /** Changes of this key only. Default: of all keys. */
  readonly key?: string | undefined;
  /** Ends the iteration, which then throws `ABORTED`. */
  readonly signal?: AbortSignal | undefined;
}

const maxTimerMs = 2 ** 31 - 1;
/** Shorter leases would be lost by pauses of the garbage collector. */
const minLeaseMs = 100;
const maxNameBytes = 60;
/** Escaped, three times as long: a subject of NATS and a key of transactional memory have room for it. */
const maxKeyBytes = 500;
const loneSurrogate = /\p{Surrogate}/u;

const dataReaders = {
  timeoutMs: integerOption(5000, 1, maxTimerMs),
} satisfies Readers<SharedDataOptions>;

const acquireReaders = {
  leaseMs: integerOption(10_000, minLeaseMs, maxTimerMs),
  timeoutMs: (name, timeoutMs = 10_000) => number(name, timeoutMs, 0),
  signal: (_, signal) => abortSignal(signal),
} satisfies Readers<AcquireOptions>;

const watchReaders = {
  key: (_, key) => (key === undefined ? key : checkKey(key)),
  signal: (_, signal) => abortSignal(signal),
} satisfies Readers<SharedMapWatchOptions>;

/** Throws `OPTION_INVALID`. */
export function fillDataOptions(what: string, options: SharedDataOptions) {
  return readOptions(`the options of ${what}`, options, dataReaders);
}

/** Throws `OPTION_INVALID`. */
export function fillAcquireOptions(options: AcquireOptions) {
  return readOptions('the options of acquire', options, acquireReaders);
}

/** Throws `OPTION_INVALID`, `SHARED_DATA_TOO_LARGE`. */
export function fillWatchOptions(options: SharedMapWatchOptions) {
  return readOptions('the options of watch', options, watchReaders);
}

/** Throws `OPTION_INVALID`, `SHARED_DATA_TOO_LARGE`. */
export function checkName(name: string): string {
  return text('the name', name, maxNameBytes);
}

/** Throws `OPTION_INVALID`, `SHARED_DATA_TOO_LARGE`. */
export function checkKey(key: string): string {
  return text('the key', key, maxKeyBytes);
}

function text(what: string, value: string, maxBytes: number): string {
  string(what, value, 'a text that is not empty');
  if (loneSurrogate.test(value)) {
    throw invalid(what, value, 'valid Unicode: half of a surrogate pair has no bytes');
  }
  const sizeBytes = Buffer.byteLength(value);
  if (sizeBytes > maxBytes) throw tooLarge(what, sizeBytes, `${maxBytes} is the limit`);
  return value;
}

/** Throws `OPTION_INVALID`. */
export function checkRevision(revision: number): number {
  return integer('the revision', revision, 1, Number.MAX_SAFE_INTEGER);
}

/** Throws `OPTION_INVALID`. */
export function checkInteger(what: string, value: number): number {
  if (Number.isSafeInteger(value)) return value;
  throw invalid(what, value, 'an integer between -(2⁵³ - 1) and 2⁵³ - 1');
}
