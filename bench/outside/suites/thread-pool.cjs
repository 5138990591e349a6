// The class in which piscina and tinypool keep their workers, over a manycore pool. The rest of the two
// (options, checks, movable values) is their own code. A test that fails here needs a feature that a pool of
// manycore lacks or implements differently.
'use strict';

const { AsyncResource } = require('node:async_hooks');
const { setTimeout: sleep } = require('node:timers/promises');
const { join } = require('node:path');
const { subscribe } = require('node:diagnostics_channel');
const { fileURLToPath, pathToFileURL } = require('node:url');
const { Pool, task } = require(fileURLToPath(process.env.OUTSIDE_MANYCORE));

const inWorker = join(__dirname, 'in-worker.cjs');
const handle = task(pathToFileURL(inWorker).href, 'handle');

/**
 * `own` holds the parts of one of the two: its defaults, errors and symbols, and the path of the module with
 * a worker's state (piscina).
 */
module.exports = (own) =>
  class ThreadPool {
    completed = 0;
    skipQueue = [];
    start = performance.now();
    histogram = null;
    _needsDrain = false;
    #unfinished = 0;
    #isClosing = false;
    #channel;

    constructor(publicInterface, given) {
      this.publicInterface = publicInterface;
      const filename = given.filename ? pathOf(given.filename) : null;
      this.options = Object.assign(Object.create(null), own.defaults, given, { filename });
      const { options } = this;
      if (given.maxThreads !== undefined)
        options.minThreads = Math.min(options.minThreads, given.maxThreads);
      if (given.minThreads !== undefined)
        options.maxThreads = Math.max(options.maxThreads, given.minThreads);
      options.maxQueue =
        given.maxQueue === 'auto'
          ? options.maxThreads ** 2
          : (given.maxQueue ?? own.defaults.maxQueue);
      structuredClone(options.workerData);
      this.#open();
      if (options.recordTiming) this.histogram = timings(this);
    }

    #open() {
      const { options } = this;
      const isProcess = options.runtime === 'child_process';
      this.pool = new Pool({
        worker: isProcess ? 'process' : 'thread',
        size: { min: options.minThreads, max: Math.ceil(options.maxThreads) },
        idleTimeMs: options.idleTimeout,
        maxSpareWorkers:
          options.idleTimeout === Infinity ? Math.ceil(options.maxThreads) : undefined,
        maxWaitingTasks: options.maxQueue,
        concurrentTasksPerWorker: options.concurrentTasksPerWorker,
        maxTasksPerWorker: options.isolateWorkers ? 1 : undefined,
        maxRssBytes: options.maxMemoryLimitBeforeRecycle,
        maxHeapMb: options.resourceLimits?.maxOldGenerationSizeMb,
        execArgv: options.execArgv,
        env: (place) => ({
          ...(options.env && unset(process.env)),
          ...options.env,
          ...(own.idVariable && { [own.idVariable]: String(place + 1) }),
        }),
        graceMs: options.teardown ? 1_000 : 0,
        onOutput: isProcess ? (text, { stream }) => process[stream].write(text) : undefined,
        setup: setupOf(own, options, isProcess),
        teardown: options.teardown && teardownOf(inWorker, options.filename, options.teardown),
      });
      // The two emit the error itself, manycore one that has it as its cause.
      this.pool.on('error', (error) => {
        if (this.publicInterface.listenerCount('error') > 0)
          this.publicInterface.emit('error', error.cause ?? error);
      });
      this.#announce(this.pool);
    }

    /** Emits `workerCreate` and `workerDestroy` of the two for the pool's own workers. */
    #announce(pool) {
      const known = new Map();
      subscribe('manycore:worker:ready', ({ worker }) => {
        if (!pool.stats().workers.some(({ id }) => id === worker)) return;
        known.set(worker, {});
        this.publicInterface.emit('workerCreate', known.get(worker));
      });
      subscribe('manycore:worker:exit', ({ worker }) => {
        if (known.has(worker)) this.publicInterface.emit('workerDestroy', known.get(worker));
      });
    }

    /** Workers, in the form in which piscina and tinypool list them. */
    get workers() {
      const { workers, waitingTasks } = this.pool.stats();
      const alive = workers.filter(({ state }) =>
        ['starting', 'ready', 'retiring'].includes(state),
      );
      let coming = waitingTasks; // tasks that a starting worker will take are that worker's, in the two
      const items = alive.map(({ id, pid, kind, state, tasksInFlight }) => {
        const first = Math.min(
          state === 'starting' ? coming : 0,
          this.options.concurrentTasksPerWorker,
        );
        coming -= first;
        return {
          worker: { threadId: kind === 'process' ? pid : id, ref() {}, unref() {}, terminate() {} },
          currentUsage: () => tasksInFlight + first,
        };
      });
      return Object.assign(items, { readyItems: items, size: items.length });
    }

    /** Tasks that no worker takes, starting ones included. */
    get taskQueue() {
      const { workers, waitingTasks, runningTasks } = this.pool.stats();
      const room = workers.length * this.options.concurrentTasksPerWorker;
      return {
        size: Math.max(0, waitingTasks + runningTasks - room),
        cancel: () => this.#cancelWaiting(),
      };
    }

    pendingCapacity() {
      return 0;
    }

    runTask(value, { filename, name, transferList = [], signal, channel }) {
      const file = filename ?? this.options.filename;
      if (typeof file !== 'string') return Promise.reject(own.errors.FilenameNotProvided());
      if (this.#isClosing) return Promise.reject(own.abortError('queue is being terminated'));
      if (signal?.aborted) return Promise.reject(own.abortError(signal.reason));
      const controller = new AbortController();
      const abort = () => controller.abort(own.abortError(signal.reason));
      if (signal)
        signal.addEventListener
          ? signal.addEventListener('abort', abort, { once: true })
          : signal.once('abort', abort);
      const moved = valueAndTransfer(value, transferList, own);
      const resource = new AsyncResource(own.resource);
      this.#unfinished++;
      const result = this.#call(
        moved,
        pathOf(file),
        name ?? this.options.name,
        controller.signal,
        channel,
      );
      const done = () => {
        if (signal) (signal.removeEventListener ?? signal.off).call(signal, 'abort', abort);
        this.completed++;
        this.#unfinished--;
        this.#maybeDrain();
      };
      this.#maybeDrain();
      return new Promise((resolve, reject) => {
        const settle = (settler, value) => {
          done();
          resource.runInAsyncScope(settler, undefined, value);
        };
        result.then(
          (value) => settle(resolve, value),
          (error) => settle(reject, this.#reason(error, controller.signal, signal)),
        );
      });
    }

    #reason(error, internal, given) {
      if (internal.aborted) return own.abortError(given?.reason);
      return error?.code === 'ABORTED' ? error.cause : this.#translate(error);
    }

    async #call({ value, transfer }, file, name, signal, channel) {
      const movables = { transferable: own.transferable, value: own.value };
      const pass = (kept) =>
        this.pool.with({ signal, ...kept }).run(handle, file, name, value, movables);
      this.#useChannel(channel);
      const result = transfer.length === 0 ? pass({}) : pass({ transfer });
      return this.options.isolateWorkers
        ? result.finally(() => this.#useChannel(undefined))
        : result;
    }

    #translate(error) {
      const known = {
        POOL_QUEUE_FULL: () =>
          this.options.maxQueue === 0
            ? own.errors.NoTaskQueueAvailable()
            : own.errors.TaskQueueAtLimit(),
        POOL_CLOSED: () => new Error('Terminating worker thread'),
        WORKER_EXITED: () =>
          error.cause instanceof Error
            ? error.cause
            : new Error(`worker exited with code: ${error.exitCode ?? error.exit?.exitCode}`),
      };
      if (error?.cause?.code === 'ERR_WORKER_OUT_OF_MEMORY') return error.cause;
      return known[error?.code]?.() ?? error;
    }

    #maybeDrain() {
      const capacity = this.options.maxThreads * this.options.concurrentTasksPerWorker;
      if (this.#unfinished >= capacity && !this._needsDrain) {
        this._needsDrain = true;
        queueMicrotask(() => this.publicInterface.emit('needsDrain'));
      } else if (this.#unfinished < capacity && this._needsDrain) {
        this._needsDrain = false;
        queueMicrotask(() => this.publicInterface.emit('drain'));
      }
    }

    #cancelWaiting() {
      this.pool.cancelWaiting(own.cancelError?.() ?? own.abortError('pool is closed'));
    }

    async recycleWorkers({ runtime } = {}) {
      const { pool } = this;
      if (runtime !== undefined && runtime !== this.options.runtime) {
        this.options.runtime = runtime;
        this.#open();
        await pool.close();
        return;
      }
      // Theirs waits for idle workers only, ours for all.
      const isOver = pool.recycle().then(() => true);
      const isIdle = ({ state, tasksInFlight }) => state === 'retiring' && tasksInFlight === 0;
      while (!(await Promise.race([isOver, sleep(10)])) && pool.stats().workers.some(isIdle));
    }

    /** tinypool calls `onClose` when a worker gets another channel or ends. */
    #useChannel(channel) {
      if (channel?.onMessage || channel?.postMessage)
        throw new Error('a task of manycore has no channel');
      if (this.#channel !== channel) this.#channel?.onClose?.();
      this.#channel = channel;
    }

    async destroy() {
      const { pool, options } = this;
      // `teardown` needs a closed pool: a worker that is killed does not run it.
      if (options.teardown && pool.stats().runningTasks === 0) {
        this.#cancelWaiting();
        await pool.close();
      } else await pool.destroy();
      this.#useChannel(undefined);
      if (own.isReopened) this.#open(); // tinypool runs tasks after destroy() as before
    }

    async close({ force }) {
      this.#isClosing = true;
      if (force) this.#cancelWaiting();
      const timeout = AbortSignal.timeout(this.options.closeTimeout);
      const isLate = new Promise((resolve) =>
        timeout.addEventListener('abort', () => resolve(true)),
      );
      if ((await Promise.race([this.pool.close(), isLate])) === true) {
        this.publicInterface.emit('error', own.errors.CloseTimeout());
        await this.pool.destroy();
      }
      this.publicInterface.emit('close');
      this.#isClosing = false;
    }
  };

const unset = (env) => Object.fromEntries(Object.keys(env).map((name) => [name, undefined]));

const pathOf = (filename) =>
  String(filename).startsWith('file:') ? fileURLToPath(filename) : String(filename);

/** Returns the value that `Piscina.move()` marked, and its transfer list. */
function valueAndTransfer(value, transferList, own) {
  if (typeof value !== 'object' || value === null || !own.isMovable(value))
    return { value, transfer: transferList };
  return {
    value: value[own.value],
    transfer: [...transferList, ...[value[own.transferable]].flat()],
  };
}

function setupOf(own, options, isProcess) {
  const { commonState } = own;
  const state = commonState
    ? { isWorkerThread: true, workerData: options.workerData }
    : {
        isTinypoolWorker: true,
        workerData: options.workerData,
        ...(isProcess ? { isChildProcess: true } : { isWorkerThread: true }),
      };
  const given = {
    state,
    idVariable: own.idVariable,
    argv: options.argv ?? [],
    niceIncrement: options.niceIncrement ?? 0,
    commonState,
  };
  const file = inWorker;
  return async () => {
    const { prepare } = await import(file);
    await prepare(given);
  };
}

const teardownOf = (file, filename, name) => async () => {
  const { finish } = await import(file);
  await finish(filename, name);
};

/** Times of the pool under piscina's names, with NaN where nothing was recorded. */
function timings(owner) {
  const summary = (name) => {
    const times = owner.pool.stats()[name];
    const { maxMs, minMs, p50Ms, p95Ms, p99Ms } = times;
    const mean = times.count === 0 ? NaN : times.meanMs;
    return {
      average: mean,
      mean,
      max: maxMs,
      min: minMs,
      stddev: times.count === 0 ? NaN : times.deviationMs,
      p50: p50Ms,
      p95: p95Ms,
      p99: p99Ms,
    };
  };
  return {
    get runTimeSummary() {
      return summary('ran');
    },
    get waitTimeSummary() {
      return summary('waited');
    },
    get runTimeCount() {
      return owner.pool.stats().ran.count;
    },
    resetRunTime: () => owner.pool.resetTimes(),
    resetWaitTime: () => owner.pool.resetTimes(),
  };
}
