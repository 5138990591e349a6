// `run` and `parallel` without an explicit pool: one pool for the program, made at the first call, with one
// worker for each granted core. Inside a worker there is no such pool: parallel calls of a task run inline
// there, because every core has its worker already.

import type { ChannelKind } from '../../channels/index.js';
import type { AnyFunction } from '../../context/index.js';
import {
  defineOwn,
  descriptorOf,
  invalid,
  notFunction,
  optionsAlone,
  ownOf,
  type Read,
  type Readers,
  readGiven,
} from '../../lib/index.js';
import { isInsideWorker } from '../../worker/index.js';
import {
  type CallOptions,
  callDefaults,
  callReaders,
  type FilledCallOptions,
  realmOptions,
} from '../options.js';
import { Pool, type TaskResult } from '../pool.js';
import { callInline } from './inline.js';

/** Options of a call, and its pool. */
export interface RunOptions extends CallOptions {
  readonly pool?: Pool | undefined;
}

/** Reader of an option `pool`. */
export function poolOption(name: string, pool: Pool | undefined): Pool | undefined {
  if (pool === undefined || pool instanceof Pool) return pool;
  throw invalid(name, pool, 'a Pool that this copy of manycore made');
}

const runReaders = { ...callReaders, pool: poolOption } satisfies Readers<RunOptions>;

interface FilledRunOptions extends FilledCallOptions, Read<typeof runReaders> {}

const runDefaults: FilledRunOptions = Object.freeze({ ...callDefaults, pool: undefined });

let shared: Pool | undefined;

/** Returns the pool of `run` and `parallel`, made at the first call. */
function defaultPool(): Pool {
  shared ??= Pool.ofProgram();
  return shared;
}

const byChannel = new Map<ChannelKind, Pool>();

/**
 * Returns the default pool for work without a pool of the user: that of `run`, or one for all the work that
 * needs another channel. `undefined` inside a worker. Throws `CHANNEL_UNAVAILABLE`.
 */
export function poolFor(channel: ChannelKind | 'auto'): Pool | undefined {
  if (isInsideWorker()) return undefined;
  const pool = defaultPool();
  if (channel === 'auto' || pool.channelKind === channel) return pool;
  const known = byChannel.get(channel);
  if (known !== undefined) return known;
  const made = new Pool({
    ...realmOptions,
    channel,
    worker: channel === 'memory' ? 'thread' : 'process',
  });
  byChannel.set(channel, made);
  return made;
}

function callOn<R>(
  pool: Pool | undefined,
  fn: AnyFunction,
  args: unknown[],
  options: FilledCallOptions,
): Promise<R>;
function callOn(
  pool: Pool | undefined,
  fn: AnyFunction,
  args: unknown[],
  options: FilledCallOptions,
): Promise<unknown> {
  if (pool === undefined && isInsideWorker() && typeof fn === 'function')
    return callInline(fn, args, options);
  let used: Pool;
  try {
    used = pool ?? defaultPool();
  } catch (error) {
    return Promise.reject(error);
  }
  return used.call(fn, args, options);
}

/** Throws `OPTION_INVALID`. */
function fillRunOptions(options: RunOptions = {}): FilledRunOptions {
  const filled = readGiven('the call options', options, runReaders, runDefaults);
  if (filled.durable !== undefined && filled.pool === undefined) {
    throw invalid(
      'durable',
      ownOf(options).durable,
      'used with a pool: { pool: new Pool({ cluster }) }',
    );
  }
  return filled;
}

/** Runs `fn(...args)` in a worker of the default pool; see `Pool.run`. */
export function run<A extends unknown[], R>(
  fn: (...args: A) => R,
  ...args: A
): Promise<TaskResult<R>> {
  return callOn(undefined, fn, args, callDefaults);
}

/** `run` with options: `run.with({ timeoutMs: 500 })(fn, ...args)`. Throws `OPTION_INVALID`. */
run.with = runWithOptions;

function runWithOptions(options: RunOptions): typeof run;
function runWithOptions(options: RunOptions, ...more: unknown[]): typeof run {
  optionsAlone('run.with(options)(fn, …)', more);
  const filled = fillRunOptions(options);
  const runWith: typeof run = Object.assign(
    <A extends unknown[], R>(fn: (...args: A) => R, ...args: A): Promise<TaskResult<R>> =>
      callOn(filled.pool, fn, args, filled),
    { with: run.with },
  );
  return runWith;
}

/**
 * Wraps `fn` as a function that runs in a worker: the same arguments, name and length, a promise of the
 * result. Throws `OPTION_INVALID`, `TASK_NOT_FUNCTION`.
 */
export function parallel<A extends unknown[], R>(
  fn: (...args: A) => R,
  options: RunOptions = {},
): (...args: A) => Promise<TaskResult<R>> {
  const filled = fillRunOptions(options);
  if (typeof fn !== 'function') throw notFunction('what should run', fn);
  const parallelFn = (...args: A): Promise<TaskResult<R>> => callOn(filled.pool, fn, args, filled);
  for (const key of ['name', 'length']) {
    const own = descriptorOf(fn, key);
    if (own !== undefined) defineOwn(parallelFn, key, own);
  }
  return parallelFn;
}

/** Starts all or `workers` workers of the default pool before the first call; as `Pool.warm`. */
export async function warm(workers?: number): Promise<void> {
  if (!isInsideWorker()) await defaultPool().warm(workers);
}
