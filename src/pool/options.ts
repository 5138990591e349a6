// Options of a pool and of a call: the types, the defaults, and the one function each that checks and fills
// them. A wrong value is an `OPTION_INVALID` that names it, before anything is started.
// Long (over 400 lines), because each option stands with its meaning, its default and its check.

import type { Transferable } from 'node:worker_threads';
import type { ChannelKind } from '../channels/index.js';
import { CodedError } from '../errors.js';
import {
  abortSignal,
  booleanOption,
  checkFunction,
  choiceOption,
  functionOption,
  hintAt,
  inheritedElement,
  integer,
  integerOption,
  invalid,
  isMainRealm,
  numberOption,
  oneOf,
  ownOf,
  ownOptions,
  type Read,
  type Readers,
  readGiven,
  readOptions,
  string,
  strings,
} from '../lib/index.js';
import {
  type FilledPartition,
  fillPartition,
  grantedCores,
  isInsideWorker,
  type OutputListener,
  type RemoteWorkers,
  type ReportListener,
  type SandboxOptions,
  type VmOptions,
  type WorkerKind,
} from '../worker/index.js';
import { atPlace, type ByPlace, isByPlace } from './workers/options-by-place.js';

/** `undefined` removes a variable. */
type Environment = Readonly<Record<string, string | undefined>>;

export interface PoolOptions {
  /**
   * `process` (default): own memory, own collector, a crash stays there. `thread`: starts faster. The options of a
   * sandbox or a virtual machine: processes whose code is not trusted.
   */
  readonly worker?: WorkerKind | SandboxOptions | VmOptions | undefined;
  /**
   * Workers: a fixed number, started as calls come, or a range that follows the load: `min` workers start
   * with the pool and stay; one that ends is replaced. Default: the granted cores.
   */
  readonly size?: number | { readonly min?: number; readonly max?: number } | undefined;
  /**
   * Uses workers of other machines instead of this one's: those that `manycore worker` lends in this
   * cluster, which must have a secret. Then `size` is by default as many as there are, 64 at most.
   */
  readonly cluster?: { readonly workers: unknown } | undefined;
  /** Channel of frames. `auto` (default): shared memory where it works, else `socket` or `memory`. */
  readonly channel?: ChannelKind | 'auto' | undefined;
  /** True: spins a few microseconds for an answer before sleeping. Default true. */
  readonly spin?: boolean | undefined;
  /** Idle workers that are kept ready beyond those at work. Default 0. */
  readonly minSpareWorkers?: number | undefined;
  /** Idle workers above which the longest idle one leaves after `idleTimeMs`. Default 0. */
  readonly maxSpareWorkers?: number | undefined;
  /** Minimum time that a spare worker above the minimum stays without work, in ms. Default 10 s. */
  readonly idleTimeMs?: number | undefined;
  /**
   * Maximum number of waiting tasks, beside those that starting workers will take; the next one is rejected
   * with `POOL_QUEUE_FULL`. Default 1,000,000.
   */
  readonly maxWaitingTasks?: number | undefined;
  /** Maximum number of tasks in a worker, waiting in its ring included. `auto` (default): by run time. */
  readonly maxTasksAhead?: number | 'auto' | undefined;
  /** Async tasks that run in one worker at a time. Default 1. */
  readonly concurrentTasksPerWorker?: number | undefined;
  /** Number of tasks after which a worker is replaced. Default: never. */
  readonly maxTasksPerWorker?: number | undefined;
  /** Resident memory above which a worker is replaced; for a thread, heap and buffers. Default: never. */
  readonly maxRssBytes?: number | undefined;
  /** Limit of a worker's old generation in MiB. Default: V8's own. */
  readonly maxHeapMb?: number | undefined;
  /** Flags of Node for the workers, after those of this process; a function as for `env`. */
  readonly execArgv?: ByPlace<readonly string[]> | undefined;
  /**
   * Environment of the workers, on top of this process's own (or, in a worker thread, that thread's);
   * `undefined` removes a variable. A function is called for each worker with its place: the lowest number from 0 that no other
   * worker of the pool has now. If it throws, or returns no environment, what waits is rejected with
   * `WORKER_START_FAILED`.
   */
  readonly env?: ByPlace<Environment> | undefined;
  /** `spread` pins each worker to one of the granted cores, in turn; not in a cluster. Default `none`. */
  readonly affinity?: 'none' | 'spread' | undefined;
  /**
   * Added to the program's nice value for its workers, 0 to 19: event loops come first where cores are
   * short. A thread has its own on Linux alone; not in a cluster. Default 0. As `niceIncrement` of piscina.
   */
  readonly niceIncrement?: number | undefined;
  /** Runs once in each worker before it takes tasks. */
  readonly setup?: (() => unknown) | undefined;
  /**
   * Runs once in each worker that leaves in order (`close()`, idle, replaced, the end of the program), and
   * is awaited: for `graceMs` by `close()`, for a second at the end of the program. Not in a worker that is
   * killed.
   */
  readonly teardown?: (() => unknown) | undefined;
  /**
   * Gets the stdout and stderr of workers, in pieces as they come, instead of the program's own output. All
   * output of a worker comes before its end is reported. An error that it throws is an uncaught exception
   * of the program. Not in a cluster. Default: the program's stdout and stderr.
   */
  readonly onOutput?: OutputListener | undefined;
  /** Maximum time for a worker to become ready, in ms. Default 30 s. */
  readonly startTimeoutMs?: number | undefined;
  /**
   * Time for which failing starts are repeated before what waits is rejected with `WORKER_START_FAILED`, in
   * ms. A lasting cause, as an unknown flag, rejects at once. Default 30 s; `Infinity`: for ever.
   */
  readonly startRetryMs?: number | undefined;
  /** Time for an aborted task to end before its worker is killed, in ms. Default 1 s. */
  readonly graceMs?: number | undefined;
  /**
   * With `concurrentTasksPerWorker` above 1: time for tasks that run beside one which goes on after
   * `graceMs` to finish before their worker is killed, in ms. They have less when that task blocks the
   * event loop, and are then rejected with `WORKER_EXITED`, which names it. Default 30 s.
   */
  readonly neighbourGraceMs?: number | undefined;
}

/**
 * Takes one value that a task reports. A method's type, because no type declares the values that a task
 * reports: the parameter is `unknown`, and may be declared as any other.
 */
export type OnReport = { take(value: unknown): unknown }['take'];

export interface CallOptions {
  /** Action when no worker is idle; for `reject` one that starts now counts as idle. Default `queue`. */
  readonly whenBusy?: 'queue' | 'inline' | 'reject' | undefined;
  /** Time limit from the start of the run. Default: none. */
  readonly timeoutMs?: number | undefined;
  /**
   * Maximum wait in the queue, in ms; then the task is rejected with `TASK_WAITED_TOO_LONG`, and has not
   * run. A task that has to wait again, because its worker ended, has that time again. Default: no limit.
   */
  readonly maxQueueMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /**
   * Gets the values of `report(value)` in the task while it runs, in order. The task's `report` resolves
   * when this has returned and its promise, if any, is settled. An error that it throws ends the call with
   * that error.
   */
  readonly onReport?: OnReport | undefined;
  /** Higher first; the same: first come, first served. Default 0. */
  readonly priority?: number | undefined;
  /**
   * Number of times to run it again when its worker ends under it. While no worker starts, a task with
   * retries left stays in the queue for another `startRetryMs` each. Default 0.
   */
  readonly retry?: number | undefined;
  /**
   * Calls with the same key run in the same worker while it lives, one after the other where the worker
   * runs one task at a time; after that in another. A new key goes to the worker with the fewest. The last
   * 10,000 keys are kept. Only with `whenBusy: 'queue'`, and not with `durable`. Default: any worker.
   */
  readonly key?: string | number | undefined;
  /**
   * Objects that the call hands over, as by `postMessage`: `ArrayBuffer`s, and to threads also
   * `MessagePort`s, web streams and `FileHandle`s. All of them must be in the arguments or captured. They
   * are detached here when the call was accepted: a refused call keeps them. To processes buffers go as
   * copies. Not with `retry`, `durable` and `whenBusy: 'inline'`. Inside a worker, where calls run inline,
   * nothing is detached. Default: none.
   */
  readonly transfer?: readonly Transferable[] | undefined;
  /**
   * For a pool with a cluster: the call is kept in JetStream until a node has run it and its result is
   * kept, whatever happens to nodes and caller. With an explicit `id` it runs once, however often it is
   * called, and a lost caller gets the result by calling again; results are kept for a week. Default false.
   */
  readonly durable?: boolean | { readonly id: string } | undefined;
}

export interface PoolSize {
  readonly minWorkers: number;
  readonly maxWorkers: number;
  /** Workers that start with the pool, before the first call, and again when one has ended. */
  readonly workersAtOnce: number;
}

const noTransfer: readonly Transferable[] = Object.freeze([]);

/**
 * Options of the pools that are never closed. Jest gives each test file a copy of this library, with pools
 * of its own: in such a context their workers leave soon after the last task.
 */
export const realmOptions: PoolOptions = Object.freeze(
  isMainRealm ? {} : { size: { min: 0 }, idleTimeMs: 1000 },
);

/** Maximum number of workers of a pool: more is a mistake in a number. */
const maxPoolWorkers = 1024;
const concurrentTasksPerWorker = integerOption(1, 1, 1_000);
/** Size of a pool on other machines when no size is given. */
const remoteSize = Object.freeze({ min: 0, max: 64 });

const poolReaders = {
  worker: (name, worker = 'process', given) => fillWorker(name, worker, given),
  size: (_, size, { cluster }) =>
    fillSize(size === undefined && cluster !== undefined ? remoteSize : size),
  cluster: (_, cluster, given) => (cluster === undefined ? undefined : fillRemote(given)),
  channel: choiceOption(['auto', 'shm', 'socket', 'memory']),
  spin: booleanOption(true),
  minSpareWorkers: integerOption(0, 0, maxPoolWorkers),
  maxSpareWorkers: integerOption(0, 0, maxPoolWorkers),
  idleTimeMs: numberOption(10_000, 0),
  maxWaitingTasks: numberOption(1_000_000, 0),
  /** `Infinity` for `auto`. */
  maxTasksAhead: (_, __, given) => fillAhead(given),
  concurrentTasksPerWorker,
  maxTasksPerWorker: numberOption(Infinity, 1),
  /** 0: no limit. */
  maxRssBytes: integerOption(0, 0, Number.MAX_SAFE_INTEGER),
  /** 0: V8's own. */
  maxHeapMb: integerOption(0, 0, 2 ** 20),
  execArgv: (name, flags = []) => fillByPlace(name, flags, strings),
  env: (name, env = {}) => fillByPlace(name, env, checkEnv),
  affinity: choiceOption(['none', 'spread']),
  niceIncrement: integerOption(0, 0, 19),
  setup: functionOption<() => unknown>,
  teardown: functionOption<() => unknown>,
  onOutput: (_, __, given) => fillOutput(given),
  startTimeoutMs: numberOption(30_000, 1),
  startRetryMs: numberOption(30_000, 0),
  graceMs: numberOption(1_000, 0),
  neighbourGraceMs: numberOption(30_000, 0),
} satisfies Readers<PoolOptions>;
hintAt('pool', Object.keys(poolReaders));

export interface FilledPoolOptions
  extends Omit<Read<typeof poolReaders>, 'size' | 'worker'>,
    PoolSize {
  readonly worker: WorkerKind;
  /** Set: the workers are processes in partitions. */
  readonly partition: FilledPartition | undefined;
}

/** Readers of the options of a call; see `readGiven`. */
export const callReaders = {
  whenBusy: choiceOption(['queue', 'inline', 'reject']),
  /** `Infinity`: none. */
  timeoutMs: numberOption(Infinity, 0),
  /** `Infinity`: none. */
  maxQueueMs: numberOption(Infinity, 0),
  signal: (_, signal) => abortSignal(signal),
  onReport: (_, __, given) => fillReport(given),
  priority: numberOption(0, -Infinity),
  retry: integerOption(0, 0, Number.MAX_SAFE_INTEGER),
  key: (_, __, given) => fillKey(given),
  transfer: (_, __, given) => fillTransfer(given),
  durable: (_, __, given) => fillDurable(given),
} satisfies Readers<CallOptions>;
hintAt('call', Object.keys(callReaders));

export interface FilledCallOptions extends Read<typeof callReaders> {
  /** For `runOnEach`: the worker that runs it. */
  readonly workerId: number | undefined;
}

export const callDefaults: FilledCallOptions = Object.freeze({
  ...readOptions('the call options', {}, callReaders),
  workerId: undefined,
});

/** Checks the user's options and fills in the defaults. Throws `OPTION_INVALID`. */
export function fillPoolOptions(options: PoolOptions = {}): FilledPoolOptions {
  const element = inheritedElement();
  if (element !== undefined) {
    throw new CodedError('WORKER_START_FAILED', `no worker can be started: ${element}`);
  }
  const { size, worker, ...others } = readOptions('the pool options', options, poolReaders);
  return { ...others, ...size, ...worker };
}

/** Options that would reach into a partition past its own, or that need what it does not share. */
const notForPartitions = ['cluster', 'channel', 'env', 'affinity', 'niceIncrement'] as const;

function fillWorker(
  name: string,
  worker: WorkerKind | SandboxOptions | VmOptions,
  given: PoolOptions,
): Pick<FilledPoolOptions, 'worker' | 'partition'> {
  if (typeof worker !== 'object' || worker === null) {
    return { worker: oneOf(name, worker, ['process', 'thread']), partition: undefined };
  }
  for (const each of notForPartitions) {
    if (given[each] !== undefined) {
      throw invalid(
        each,
        given[each],
        'left out for workers in a partition, which have options of their own',
      );
    }
  }
  return { worker: 'process', partition: fillPartition(worker) };
}

/** Checks and fills the options of one call, as `fillPoolOptions`. */
export function fillCallOptions(options: CallOptions = {}): FilledCallOptions {
  return readGiven('the call options', options, callReaders, callDefaults);
}

/**
 * Throws `OPTION_INVALID` for options that `runOnEach` cannot keep: each worker runs it once, after its own
 * tasks.
 */
export function checkForEach({ whenBusy, retry, key, transfer, durable }: FilledCallOptions): void {
  if (whenBusy !== 'queue') throw invalid('whenBusy', whenBusy, '"queue" with runOnEach');
  if (retry !== 0) throw invalid('retry', retry, 'left out, or 0, with runOnEach');
  if (key !== undefined) throw invalid('key', key, 'left out with runOnEach');
  if (transfer.length > 0) throw invalid('transfer', transfer, 'left out with runOnEach');
  if (durable !== undefined) throw invalid('durable', durable, 'left out with runOnEach');
}

function fillOutput({ onOutput, cluster }: PoolOptions): OutputListener | undefined {
  if (onOutput === undefined) return undefined;
  if (cluster !== undefined)
    throw invalid('onOutput', onOutput, 'left out for a pool with a cluster');
  checkFunction('onOutput', onOutput);
  return onOutput;
}

function fillKey({ key, whenBusy, durable = false }: CallOptions): string | number | undefined {
  if (key === undefined) return undefined;
  if (typeof key !== 'string' && typeof key !== 'number') {
    throw invalid('key', key, 'a string or a number');
  }
  if (whenBusy !== undefined && whenBusy !== 'queue') {
    throw invalid('whenBusy', whenBusy, '"queue" with key');
  }
  if (durable !== false) throw invalid('key', key, 'left out for a durable task');
  return key;
}

function fillTransfer({
  transfer = noTransfer,
  retry = 0,
  durable = false,
  whenBusy,
}: CallOptions): readonly Transferable[] {
  if (!Array.isArray(transfer)) throw invalid('transfer', transfer, 'an array');
  if (transfer.length === 0) return noTransfer;
  // Transferred objects are gone, so they cannot go twice.
  if (retry > 0) throw invalid('retry', retry, 'left out, or 0, with transfer');
  if (durable !== false) throw invalid('transfer', transfer, 'left out for a durable task');
  if (whenBusy === 'inline')
    throw invalid('whenBusy', whenBusy, '"queue" or "reject" with transfer');
  for (const [index, each] of transfer.entries()) {
    const first = transfer.indexOf(each);
    if (first < index)
      throw invalid(`transfer[${index}]`, each, `there once: transfer[${first}] is the same`);
    if (typeof each !== 'object' || each === null)
      throw invalid(`transfer[${index}]`, each, 'an object');
  }
  return [...transfer];
}

function fillReport({ onReport, durable = false }: CallOptions): ReportListener | undefined {
  if (onReport === undefined) return undefined;
  if (durable !== false) throw invalid('onReport', onReport, 'left out for a durable task');
  checkFunction('onReport', onReport);
  return (value) => Reflect.apply(onReport, undefined, [value]);
}

function fillDurable({ durable = false, whenBusy, priority, maxQueueMs }: CallOptions) {
  if (durable === false) return undefined;
  if (whenBusy !== undefined && whenBusy !== 'queue') {
    throw invalid('whenBusy', whenBusy, '"queue" for a durable task');
  }
  if (priority !== undefined) throw invalid('priority', priority, 'left out for a durable task');
  if (maxQueueMs !== undefined) {
    throw invalid('maxQueueMs', maxQueueMs, 'left out for a durable task');
  }
  if (durable === true) return { id: undefined };
  const { id } = ownOptions('durable', durable, new Set(['id']));
  if (id === '') throw invalid('durable.id', '', 'a text that is not empty');
  return { id: string('durable.id', id, 'a text') };
}

function fillRemote({
  cluster,
  worker = 'process',
  channel = 'auto',
  affinity = 'none',
  niceIncrement = 0,
}: PoolOptions): RemoteWorkers {
  if (worker !== 'process') throw invalid('worker', worker, '"process" for a pool with a cluster');
  if (channel !== 'auto' && channel !== 'socket') {
    throw invalid('channel', channel, '"auto" or "socket" for a pool with a cluster');
  }
  // The allowed cores of a remote worker are known to its machine only.
  if (affinity !== 'none') throw invalid('affinity', affinity, '"none" for a pool with a cluster');
  if (niceIncrement !== 0) {
    throw invalid('niceIncrement', niceIncrement, 'left out for a pool with a cluster');
  }
  const workers = cluster?.workers;
  if (isRemoteWorkers(workers)) return workers;
  throw invalid('cluster', cluster, 'what `cluster()` resolved with');
}

function isRemoteWorkers(value: unknown): value is RemoteWorkers {
  return typeof value === 'object' && value !== null && 'start' in value;
}

function fillAhead(given: PoolOptions): number {
  const { maxTasksAhead = 'auto' } = given;
  if (maxTasksAhead === 'auto') return Infinity;
  integer('maxTasksAhead', maxTasksAhead, 1, 1_000_000);
  const concurrentTasks = concurrentTasksPerWorker(
    'concurrentTasksPerWorker',
    given.concurrentTasksPerWorker,
  );
  if (maxTasksAhead >= concurrentTasks) return maxTasksAhead;
  const wanted = `at least concurrentTasksPerWorker, which is ${concurrentTasks}`;
  throw invalid('maxTasksAhead', maxTasksAhead, wanted);
}

/** Fills the size alone, as `fillPoolOptions`. */
export function fillSize(size: PoolOptions['size']): PoolSize {
  // A worker counts as one core: a pool inside a worker has that one core.
  const cores = isInsideWorker() ? 1 : grantedCores().count;
  if (size === undefined) return { minWorkers: cores, maxWorkers: cores, workersAtOnce: 0 };
  if (typeof size === 'number') {
    const workers = integer('size', size, 1, maxPoolWorkers);
    return { minWorkers: workers, maxWorkers: workers, workersAtOnce: 0 };
  }
  if (typeof size !== 'object' || size === null || Array.isArray(size)) {
    throw invalid('size', size, 'a number or an object with min and max');
  }
  const { min = 0, max = Math.max(cores, min) } = ownOptions('size', size, new Set(['min', 'max']));
  const maxWorkers = integer('size.max', max, 1, maxPoolWorkers);
  const minWorkers = integer('size.min', min, 0, maxWorkers);
  return { minWorkers, maxWorkers, workersAtOnce: minWorkers };
}

function fillByPlace<T extends object>(
  name: string,
  option: ByPlace<T>,
  check: (name: string, value: T) => T,
): ByPlace<T> {
  return isByPlace(option) ? option : check(name, option);
}

/** Returns the options that depend on the place of the worker. Throws `OPTION_INVALID`. */
export function optionsAt({ env, execArgv }: FilledPoolOptions, place: number) {
  return {
    env: atPlace('env', env, place, checkEnv),
    execArgv: atPlace('execArgv', execArgv, place, strings),
  };
}

function checkEnv(what: string, env: Environment): Environment {
  if (typeof env !== 'object' || env === null) throw invalid(what, env, 'an object of strings');
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && typeof value !== 'string') {
      throw invalid(`${name} of ${what}`, value, 'a string');
    }
  }
  return ownOf(env);
}
