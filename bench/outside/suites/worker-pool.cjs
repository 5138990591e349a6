// workerpool's class `Pool` over a pool of manycore.
'use strict';

const { join } = require('node:path');
const { subscribe, unsubscribe } = require('node:diagnostics_channel');
const { fileURLToPath, pathToFileURL } = require('node:url');
const os = require('node:os');
const { Pool, task } = require(fileURLToPath(process.env.OUTSIDE_MANYCORE));

const methodsFile = join(__dirname, 'worker-methods.cjs');
const methods = pathToFileURL(methodsFile).href;
const call = task(methods, 'call');
const apply = task(methods, 'apply');

module.exports = (OwnPromise, { FIFOQueue, LIFOQueue }) =>
  class WorkerPool {
    #unsettled = new Set();
    /** The `on` of the last call of each worker. */
    #listeners = new Map();
    #calls = 0;

    constructor(script, options) {
      this.script = typeof script === 'string' ? script : undefined;
      this.options = (typeof script === 'string' ? options : script) ?? {};
      const { maxWorkers = Math.max(os.cpus().length - 1, 1), minWorkers = 0 } = this.options;
      if (!Number.isInteger(maxWorkers) || maxWorkers < 1)
        throw new TypeError('maxWorkers must be an integer >= 1');
      if (minWorkers !== 'max' && (!Number.isInteger(minWorkers) || minWorkers < 0))
        throw new TypeError('minWorkers must be an integer >= 0');
      this.minWorkers = minWorkers === 'max' ? maxWorkers : minWorkers;
      this.maxWorkers = Math.max(maxWorkers, this.minWorkers);
      const { workerType = 'auto', queueStrategy = 'fifo' } = this.options;
      this.#open(workerType === 'process' ? 'process' : 'thread');
      const Queue = { fifo: FIFOQueue, lifo: LIFOQueue }[queueStrategy];
      this.taskQueue =
        Queue === undefined
          ? queueStrategy
          : Object.assign(new Queue(), { size: () => this.#waiting });
    }

    #open(worker) {
      const { workerTerminateTimeout, ...options } = this.options;
      const { forkArgs = [], forkOpts = {}, workerThreadOpts = {} } = options;
      let next = { forkArgs, forkOpts, workerThreadOpts };
      const own = () => (worker === 'process' ? next.forkOpts : next.workerThreadOpts);
      this.#announce(() => next);
      this.pool = new Pool({
        worker,
        size: { min: this.minWorkers, max: this.maxWorkers },
        env: () => {
          next = { ...next, ...options.onCreateWorker?.({ forkArgs, forkOpts, workerThreadOpts }) };
          return own().env ?? {};
        },
        execArgv: () => own().execArgv ?? [],
        maxHeapMb: own().resourceLimits?.maxOldGenerationSizeMb,
        graceMs: workerTerminateTimeout,
        maxSpareWorkers: this.maxWorkers,
        teardown: teardownOf(methodsFile),
        onOutput: this.options.emitStdStreams
          ? (text, { worker, stream }) => this.#listeners.get(worker)?.({ [stream]: text })
          : undefined,
      });
    }

    /** Calls `onTerminateWorker` for each worker, with the options that `onCreateWorker` returned. */
    #announce(optionsOfNext) {
      const made = new Map();
      const isOwn = (worker) => this.pool.stats().workers.some(({ id }) => id === worker);
      subscribe('manycore:worker:start', ({ worker }) => {
        // A pool with `minWorkers` starts workers in its constructor.
        if (this.pool === undefined || isOwn(worker)) made.set(worker, optionsOfNext());
      });
      subscribe('manycore:worker:exit', ({ worker }) => {
        if (made.has(worker)) this.options.onTerminateWorker?.(made.get(worker));
        made.delete(worker);
      });
    }

    get #waiting() {
      const { workers, waitingTasks, runningTasks } = this.pool.stats();
      return Math.max(0, waitingTasks + runningTasks - workers.filter(isAlive).length);
    }

    get workers() {
      return this.pool
        .stats()
        .workers.filter(isAlive)
        .map(({ kind, pid }) => ({
          worker: {
            isWorkerThread: kind === 'thread',
            isChildProcess: kind === 'process',
            pid,
            kill: () => kind === 'process' && process.kill(pid, 'SIGKILL'),
          },
        }));
    }

    exec(method, params, options = {}) {
      if (params && !Array.isArray(params))
        throw new TypeError('Array expected as argument "params"');
      if (!['string', 'function'].includes(typeof method))
        throw new TypeError('Function or string expected as argument "method"');
      if (this.#waiting >= (this.options.maxQueueSize ?? Infinity))
        throw new Error(`Max queue size of ${this.options.maxQueueSize} reached`);
      const resolver = OwnPromise.defer();
      const controller = new AbortController();
      const caller = this.pool.with({
        signal: controller.signal,
        // The last one first: each call has a higher priority than those before it.
        ...(this.options.queueStrategy === 'lifo' && { priority: ++this.#calls }),
        ...(options.on && { onReport: options.on }),
        ...(options.transfer && { transfer: options.transfer }),
      });
      const task = { resolver, isStarted: false };
      this.#unsettled.add(task);
      const announced = announcedOfNext(() => {
        const result =
          typeof method === 'function'
            ? caller.run(apply, method, params)
            : caller.run(call, this.script, method, params);
        result.then(
          (value) => resolver.resolve(value),
          (error) => resolver.reject(translate(error)),
        );
      });
      this.#onStart(resolver.promise, announced, options.on);
      resolver.promise
        .catch((error) => {
          if (
            error instanceof OwnPromise.CancellationError ||
            error instanceof OwnPromise.TimeoutError
          )
            controller.abort();
        })
        .then(() => this.#unsettled.delete(task));
      return resolver.promise;
    }

    /** `timeout(ms)` of the promise counts from the start of the task; its output then goes to `on`. */
    #onStart(promise, { queued, started }, on) {
      const timeout = promise.timeout.bind(promise);
      let delay;
      let isStarted = false;
      const onStart = ({ task, worker }) => {
        if (task !== queued?.task && task !== started?.task) return;
        unsubscribe('manycore:task:start', onStart);
        isStarted = true;
        this.#listeners.set(worker, on);
        if (delay !== undefined) timeout(delay);
      };
      if (started === undefined) subscribe('manycore:task:start', onStart);
      else onStart(started);
      promise.timeout = (ms) => {
        if (isStarted) return timeout(ms);
        delay = ms;
        return promise;
      };
    }

    proxy() {
      return this.exec('methods').then((names) =>
        Object.fromEntries(names.map((name) => [name, (...args) => this.exec(name, args)])),
      );
    }

    stats() {
      const { workers, waitingTasks, runningTasks } = this.pool.stats();
      const totalWorkers = workers.filter(isAlive).length;
      const busyWorkers = Math.min(totalWorkers, waitingTasks + runningTasks);
      return {
        totalWorkers,
        busyWorkers,
        idleWorkers: totalWorkers - busyWorkers,
        pendingTasks: this.#waiting,
        activeTasks: busyWorkers,
      };
    }

    terminate(force = false, timeout = undefined) {
      const { pool } = this;
      if (this.#waiting > 0) {
        const { workers } = pool.stats();
        for (const { resolver } of [...this.#unsettled].slice(workers.length))
          resolver.reject(new Error('Pool terminated'));
      }
      const late =
        timeout === undefined ? [] : [new Promise((resolve) => setTimeout(resolve, timeout))];
      const ended = force
        ? pool.destroy()
        : Promise.race([pool.close(), ...late]).then(() => pool.destroy());
      return new OwnPromise((resolve, reject) => ended.then(resolve, reject));
    }
  };

const teardownOf = (file) => async () => {
  const { end } = await import(file);
  await end();
};

const isAlive = ({ state }) => ['starting', 'ready', 'retiring'].includes(state);

/**
 * Returns the messages about the task that `start` hands to a pool: it is queued, or a worker starts it at
 * once.
 */
function announcedOfNext(start) {
  const announced = {};
  const onQueued = (message) => {
    announced.queued = message;
  };
  const onStarted = (message) => {
    announced.started = message;
  };
  subscribe('manycore:task:queued', onQueued);
  subscribe('manycore:task:start', onStarted);
  start();
  unsubscribe('manycore:task:queued', onQueued);
  unsubscribe('manycore:task:start', onStarted);
  return announced;
}

function translate(error) {
  if (error?.code === 'WORKER_EXITED') {
    return new Error(
      `Workerpool Worker terminated Unexpectedly\n    exitCode: \`${error.exitCode}\`\n    signalCode: \`${error.signal}\`\n    workerpool.script: \`worker.js\``,
    );
  }
  if (error?.code === 'POOL_CLOSED') return new Error('Pool terminated');
  return error instanceof Error
    ? error
    : Object.assign(new Error(error?.message ?? String(error)), error);
}
