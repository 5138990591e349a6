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
    /** The `on` of the last call of each host. */
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

    #open(host) {
      const { workerTerminateTimeout, ...options } = this.options;
      const { forkArgs = [], forkOpts = {}, workerThreadOpts = {} } = options;
      let next = { forkArgs, forkOpts, workerThreadOpts };
      const own = () => (host === 'process' ? next.forkOpts : next.workerThreadOpts);
      this.#announce(() => next);
      this.pool = new Pool({
        host,
        size: { min: this.minWorkers, max: this.maxWorkers },
        env: () => {
          next = { ...next, ...options.onCreateWorker?.({ forkArgs, forkOpts, workerThreadOpts }) };
          return own().env ?? {};
        },
        execArgv: () => own().execArgv ?? [],
        maxHeapMb: own().resourceLimits?.maxOldGenerationSizeMb,
        graceMs: workerTerminateTimeout,
        maxSpareHosts: this.maxWorkers,
        teardown: teardownOf(methodsFile),
        onOutput: this.options.emitStdStreams
          ? (text, { host, stream }) => this.#listeners.get(host)?.({ [stream]: text })
          : undefined,
      });
    }

    /** Tells `onTerminateWorker` of each host, with what `onCreateWorker` made of its options. */
    #announce(optionsOfNext) {
      const made = new Map();
      const isOwn = (host) => this.pool.stats().hosts.some(({ id }) => id === host);
      subscribe('manycore:host:start', ({ host }) => {
        // A pool with `minWorkers` starts hosts before it is there.
        if (this.pool === undefined || isOwn(host)) made.set(host, optionsOfNext());
      });
      subscribe('manycore:host:exit', ({ host }) => {
        if (made.has(host)) this.options.onTerminateWorker?.(made.get(host));
        made.delete(host);
      });
    }

    get #waiting() {
      const { hosts, waitingTasks, runningTasks } = this.pool.stats();
      return Math.max(0, waitingTasks + runningTasks - hosts.filter(isAlive).length);
    }

    get workers() {
      return this.pool
        .stats()
        .hosts.filter(isAlive)
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

    /** `timeout(ms)` of the promise counts from when the task has left the queue; then output is that of `on`. */
    #onStart(promise, { queued, started }, on) {
      const timeout = promise.timeout.bind(promise);
      let delay;
      let isStarted = false;
      const onStart = ({ task, host }) => {
        if (task !== queued?.task && task !== started?.task) return;
        unsubscribe('manycore:task:start', onStart);
        isStarted = true;
        this.#listeners.set(host, on);
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
      const { hosts, waitingTasks, runningTasks } = this.pool.stats();
      const totalWorkers = hosts.filter(isAlive).length;
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
        const { hosts } = pool.stats();
        for (const { resolver } of [...this.#unsettled].slice(hosts.length))
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

/** What is announced of the task that `start` hands to a pool: it waits, or a host has it at once. */
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
  if (error?.code === 'HOST_EXITED') {
    return new Error(
      `Workerpool Worker terminated Unexpectedly\n    exitCode: \`${error.exitCode}\`\n    signalCode: \`${error.signal}\`\n    workerpool.script: \`host.js\``,
    );
  }
  if (error?.code === 'POOL_CLOSED') return new Error('Pool terminated');
  return error instanceof Error
    ? error
    : Object.assign(new Error(error?.message ?? String(error)), error);
}
