// Which option was meant by a name that is none: one that other pools have for the same thing, or a
// misspelt one.

/** Names of piscina, tinypool, workerpool, p-map, p-queue and worker_threads, and what does that here. */
const foreignNames: Readonly<Record<string, string>> = {
  atomics: 'spin',
  capacity: 'maxWaitingTasks',
  closeTimeout: 'close({ timeoutMs })',
  concurrency: 'size of a pool, which you give as the option pool',
  concurrentTasksPerWorker: 'concurrentTasksPerHost',
  filename: 'no file: give run() the function itself',
  forkArgs: 'setup, which may capture them',
  forkOpts: 'env and execArgv',
  idleTimeout: 'idleTimeMs',
  intervalCap: 'maxWaitingTasks and size',
  isolateWorkers: 'maxTasksPerHost: 1',
  maxMemoryLimitBeforeRecycle: 'maxRssBytes',
  maxQueue: 'maxWaitingTasks',
  maxQueueSize: 'maxWaitingTasks',
  maxThreads: 'size: { max }',
  maxWorkers: 'size: { max }',
  minThreads: 'size: { min }',
  minWorkers: 'size: { min }',
  name: 'no name: give run() the function itself',
  numWorkers: 'size',
  onCreateWorker: 'setup, which runs in each host',
  onTerminateWorker: 'teardown, which runs in each host',
  resourceLimits: 'maxHeapMb',
  retries: 'retry',
  runtime: 'host: "process" or "thread"',
  stopOnError: 'settled: true',
  taskTimeout: 'timeoutMs of a call',
  terminateTimeout: 'close({ timeoutMs })',
  timeout: 'timeoutMs',
  workerData: 'setup, which may capture it',
  workerOpts: 'env and execArgv',
  workerTerminateTimeout: 'graceMs',
  workerThreadOpts: 'env and execArgv',
  workerType: 'host: "process" or "thread"',
  workers: 'size',
};

/** What to write instead of `name`; `undefined` when nothing is near. `names` are the right ones. */
export function didYouMean(name: string, names: Iterable<string>): string | undefined {
  const near = nearest(name, names);
  if (near !== undefined) return near;
  return Object.hasOwn(foreignNames, name) ? foreignNames[name] : undefined;
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
