// The way out for an unknown option: the name that was misspelt, the place that an
// option of manycore belongs to, or what stands here for an option of another pool.

/**
 * Options of piscina, tinypool, workerpool, poolifier, threads.js, jest-worker, p-map, p-limit, p-queue, fastq,
 * async and PM2 that have another name here, in pools, calls and maps.
 */
const synonyms: Readonly<Record<string, string>> = {
  abortListenerTimeout: 'graceMs',
  abortSignal: 'signal',
  backpressure: 'lead',
  batchSize: 'chunk',
  capacity: 'maxWaitingTasks',
  chunkSize: 'chunk',
  computeWorkerKey: 'key',
  concurrency: 'size',
  emitStdStreams: 'onOutput',
  exitHandler: 'teardown',
  idleMemoryLimit: 'maxRssBytes',
  idleTimeout: 'idleTimeMs',
  instances: 'size',
  killHandler: 'teardown',
  limit: 'size',
  maxConcurrency: 'size',
  max_memory_restart: 'maxRssBytes',
  maxInactiveTime: 'idleTimeMs',
  maxMemoryLimitBeforeRecycle: 'maxRssBytes',
  maxQueue: 'maxWaitingTasks',
  maxQueuedJobs: 'maxWaitingTasks',
  maxQueueSize: 'maxWaitingTasks',
  maxRetries: 'retry',
  maxThreads: 'size: { max }',
  maxWorkers: 'size: { max }',
  messageHandler: 'onReport',
  milliseconds: 'timeoutMs',
  minThreads: 'size: { min }',
  minWorkers: 'size: { min }',
  numThreads: 'size',
  numWorkers: 'size',
  on: 'onReport',
  onCreateWorker: 'setup',
  onlineHandler: 'setup',
  onTerminate: 'teardown',
  onTerminateWorker: 'teardown',
  order: 'ordered',
  parallelism: 'size',
  payload: 'chunk',
  poolSize: 'size',
  preserveOrder: 'ordered',
  resourceLimits: 'maxHeapMb',
  retries: 'retry',
  runtime: 'worker',
  stderr: 'onOutput',
  stdout: 'onOutput',
  taskTimeout: 'timeoutMs',
  threads: 'size',
  timeout: 'timeoutMs',
  transferList: 'transfer',
  workerGracefulExitTimeout: 'graceMs',
  workers: 'size',
  workerTerminateTimeout: 'graceMs',
  workerType: 'worker',
};

const noFile = 'there is no worker file: call the function itself, or task(url, name)';
const captured = 'functions, and setup of the pool, see what they captured: nothing is handed over';
const byPriority = 'the queue is ordered by option priority of the call';
const noRate =
  'calls are not limited by time: size and maxWaitingTasks of the pool limit what runs and waits';
const always = 'pool.stats() always has the times of tasks';
const forWorkers = 'env and execArgv are options of the pool itself';
const byPool = 'the pool chooses the worker; option key of the call keeps calls together';
const oneQueue =
  'there is always a queue: maxWaitingTasks and concurrentTasksPerWorker of the pool are its limits';
const stealing = 'tasks that wait behind others always go to a worker with nothing to do';
const noErrors = 'retry is for workers that end: what a function throws is never tried again';
const onceDone = 'await the promises of the calls; pool.close() waits for all of them';
const onClose = 'pool.close({ timeoutMs }) waits so long';

/** Options of theirs for which there is no option here. */
const waysOut: Readonly<Record<string, string>> = {
  _baseURL: noFile,
  agingFactor: byPriority,
  argv: captured,
  atomics: 'nothing to choose: workers are reached over shared memory where there is any',
  autoStart: 'tasks start at once; pool.warm() starts workers before the first call',
  carryoverConcurrencyCount: noRate,
  carryoverIntervalCount: noRate,
  channel: 'the pool has a channel; messages of a task are sent by report(value) to onReport',
  closeTimeout: onClose,
  CORSWorkaround: noFile,
  drain: onceDone,
  drained: onceDone,
  elu: byPool,
  empty: onceDone,
  enableEvents: 'what a pool does is always published on node:diagnostics_channel',
  enableTasksQueue: oneQueue,
  enableWorkerThreads: 'worker: "thread" is an option of the pool',
  errorFilter: noErrors,
  errorHandler: 'the pool has an event "error"',
  exposedMethods: noFile,
  filename: noFile,
  force: 'pool.destroy() ends what runs',
  forkArgs: captured,
  forkOptions: forWorkers,
  forkOpts: forWorkers,
  id: 'a call has no name: its signal cancels it',
  interval: noRate,
  intervalCap: noRate,
  isolateWorkers: 'maxTasksPerWorker: 1 of the pool does that',
  iteratee: noFile,
  killBehavior: 'a task that goes on graceMs after its abort ends with its worker',
  loadBalancer: byPool,
  loadExponent: byPriority,
  measurement: byPool,
  metadata: byPriority,
  name: noFile,
  onCreateWorker: 'setup runs in each worker; env and execArgv may be functions of its place',
  pool: 'a pool runs its own calls: run.with({ pool })(fn) and pmap(items, fn, { pool }) take one',
  queueClass: byPriority,
  queueStrategy: byPriority,
  recordTiming: always,
  rejectOnClear: 'pool.cancelWaiting() always rejects what waits',
  restartWorkerOnError: 'a worker that ends is always replaced where calls need it',
  runTime: byPool,
  saturated: 'pool.hasRoom() resolves when one more call may come',
  script: noFile,
  serialization: 'values always travel with their prototypes and shared references',
  settings: forWorkers,
  setupArgs: captured,
  silent: 'onOutput of the pool gets what workers print',
  startWorkers: 'workers start as calls come; pool.warm() starts them before the first',
  stopOnError: 'settled: true of a map has errors among its results',
  strategy: byPool,
  strict: noRate,
  stricterFIFO: 'tasks of one priority always run first come, first served',
  taskFunction: noFile,
  taskQueue: byPriority,
  tasksFinishedTimeout: onClose,
  tasksQueueOptions: oneQueue,
  tasksStealingOnBackPressure: stealing,
  tasksStealingRatio: stealing,
  taskStealing: stealing,
  terminateTimeout: onClose,
  throwOnTimeout: 'a call that is out of time always rejects',
  times: noErrors,
  trackUnmanagedFds: 'nothing to set: files that tasks leave open are closed with their worker',
  unsaturated: 'pool.hasRoom() resolves when one more call may come',
  useAtomics: 'nothing to choose: workers are reached over shared memory where there is any',
  waitTime: byPool,
  weights: byPool,
  workerChoiceStrategy: byPool,
  workerChoiceStrategyOptions: byPool,
  workerData: captured,
  workerHistogram: always,
  workerNodeKeys: byPool,
  workerOptions: forWorkers,
  workerOpts: forWorkers,
  workerPath: noFile,
  WorkerPool: 'worker: "thread" or "process" is an option of the pool',
  workerSchedulingPolicy: byPool,
  workerThreadOpts: forWorkers,
};

type Taker = 'call' | 'pool' | 'map';

/** The options of calls, pools and maps: each part adds its own when it is loaded. */
const options = new Map<Taker, ReadonlySet<string>>();

/** Adds the names of options, for hints about one that was given to another taker. */
export function hintAt(taker: Taker, names: readonly string[]): void {
  options.set(taker, new Set(names));
}

const takes = (taker: Taker, name: string): boolean => options.get(taker)?.has(name) === true;

/** Says where the option `bare` belongs; `text`: with its value. */
function placeOf(bare: string, text: string, names: ReadonlySet<string>): string | undefined {
  if (names.has('ordered') && bare === 'timeoutMs') {
    return 'a map has no time limit of its own: signal: AbortSignal.timeout(ms) is one for all of it';
  }
  if (takes('call', bare)) return `${bare} is an option of a call: pool.with({ ${text} })`;
  if (takes('pool', bare)) {
    const how = names.has('pool') ? ', which is given as option pool' : '';
    return `${bare} is an option of a pool: new Pool({ ${text} })${how}`;
  }
  if (!takes('map', bare)) return undefined;
  return `${bare} is an option of a map: pmap(items, fn, { ${text} })`;
}

/**
 * Options of PM2 and of other calls, with names that mean the same here. The hint is the first one that the call
 * accepts.
 */
const equivalents: Readonly<Record<string, readonly string[]>> = {
  abortSignal: ['signal'],
  cron: ['reloadAt'],
  cron_restart: ['reloadAt'],
  gid: ['group'],
  instances: ['processes'],
  interpreter_args: ['nodeFlags'],
  kill_timeout: ['drainTimeoutMs', 'stopTimeoutMs'],
  listen_timeout: ['startTimeoutMs'],
  local: ['isLocal'],
  max_memory_restart: ['maxRssBytes'],
  maxQueue: ['maxBuffered'],
  node_args: ['nodeFlags'],
  pid_file: ['pidFile'],
  script: ['app'],
  uid: ['user'],
  watch: ['reloadOnChange'],
};

const output = 'manycore serve --log FILE writes what processes print, and onOutput gets it';
const nodeFlags =
  'processes get the flags of the Node that starts them, and manycore.config.json has nodeFlags';
const instanceNumbers = 'the number of a loop is in NODE_APP_INSTANCE';
const restartDelays = 'delays between restarts grow by themselves, from 50 ms to 5 s';

/** Options of PM2 that have no equivalent in `serve`. */
const waysOutOfServe: Readonly<Record<string, string>> = {
  autorestart:
    'a process that ends is replaced; the server ends after 5 failures in a row while none serves',
  cwd: 'start the supervisor in the folder',
  env: 'processes have the environment of the program that starts them, and manycore.config.json has env for all its apps',
  error_file: output,
  exec_mode: 'plan names what follows the load, processes and loops set the numbers',
  exp_backoff_restart_delay: restartDelays,
  ignore_watch:
    'changes in node_modules and .git, and of .log, .pid and .sock files, are always ignored',
  increment_var: instanceNumbers,
  instance_var: instanceNumbers,
  interpreter: 'processes run under the Node that starts them',
  interpreter_args: nodeFlags,
  log_file: output,
  max_restarts: 'maxFailures limits failures in a row while no process serves',
  merge_logs: output,
  min_uptime: 'a process that has served for 10 s ends a row of failures',
  namespace: 'the apps of one manycore.config.json start and end together',
  node_args: nodeFlags,
  out_file: output,
  pid_file: 'use the flag --pid-file of manycore serve',
  restart_delay: restartDelays,
  script: 'the program is the first argument: serve(app, options)',
  stop_exit_codes: 'a process that ends is replaced, whatever its exit code',
  wait_ready: 'a process is ready when its program listens',
  watch: 'use the flag --reload-on-change of manycore serve',
};

/** Ends of names that are often left out. */
const units = ['Ms', 'Bytes'];

/** The end of the error for the option `name`; '' without a near name. `names` are the right ones. */
export function hintFor(name: string, names: ReadonlySet<string>): string {
  if (names.has('concurrentTasksPerWorker') || names.has('retry')) {
    const text = entry(synonyms, name) ?? name;
    const [bare = ''] = text.split(':');
    if (names.has(bare)) return `; did you mean ${text}?`;
    const wayOut = entry(waysOut, name) ?? placeOf(bare, text, names);
    if (wayOut !== undefined) return `; ${wayOut}`;
  }
  const equivalent = entry(equivalents, name)?.find((each) => names.has(each));
  if (equivalent !== undefined) return `; did you mean ${equivalent}?`;
  // Only servers have plans.
  const instead = names.has('plan') ? entry(waysOutOfServe, name) : undefined;
  if (instead !== undefined) return `; ${instead}`;
  const near =
    units.map((unit) => name + unit).find((each) => names.has(each)) ?? nearest(name, names);
  return near === undefined ? '' : `; did you mean ${near}?`;
}

function entry<Value>(table: Readonly<Record<string, Value>>, name: string): Value | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

/** The name with the fewest changes; at most a third of its letters, and the case does not count. */
function nearest(name: string, names: Iterable<string>): string | undefined {
  let best: string | undefined;
  let least = Math.floor(name.length / 3) + 1;
  for (const each of names) {
    const changes = distance(name.toLowerCase(), each.toLowerCase(), least);
    if (changes >= least) continue;
    least = changes;
    best = each;
  }
  return best;
}

/** Letters to insert, drop or replace; `limit` and more may be less in truth. */
function distance(from: string, to: string, limit: number): number {
  if (Math.abs(from.length - to.length) >= limit) return limit;
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let i = 1; i <= from.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= to.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? limit;
}
