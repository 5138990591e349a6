// Hints in the error for an unknown option, beside the list of names.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { busOptions } from '../../../src/bus/options.js';
import { fillClusterOptions, fillLendOptions } from '../../../src/cluster/options.js';
import { hintFor } from '../../../src/lib/input/did-you-mean.js';
import { hasCode, Pool, pmap, run } from '../../../src/public.js';
import { fillServeOptions } from '../../../src/serve/options.js';
import {
  fillAcquireOptions,
  fillDataOptions,
  fillWatchOptions,
} from '../../../src/shared-data/options.js';
import { Loops } from '../../../src/units/index.js';
import { fillDeployAll, fillDeployOptions } from '../../../src/units/options.js';
import { random } from '../../support/index.js';

type Takers = Readonly<Record<string, (options: object) => unknown>>;

/** Throws the error for an unknown option. */
const takers: Takers = {
  'new Pool()': (options) => new Pool(options),
  'run.with()': (options) => run.with(options),
  'pmap.stream()': (options) => pmap.stream([1], (x) => x, options),
};

/** Takers without workers of their own. */
const otherTakers: Takers = {
  'serve()': (options) => fillServeOptions(options),
  'new Loops()': (options) => new Loops(options),
  'deploy()': (options) => fillDeployOptions({ kind: 'value', value: class {} }, options),
  'lendWorkers()': (options) => fillLendOptions(options),
  'cluster()': (options) => Reflect.apply(fillClusterOptions, undefined, [options]),
  'bus.send()': (options) => busOptions('send', options),
  'bus.request()': (options) => busOptions('request', options),
  'bus.openStream()': (options) => busOptions('openStream', options),
  'bus.consumer()': (options) => busOptions('consumer', options),
  'bus.service()': (options) => busOptions('service', options),
  'bus.proxy()': (options) => busOptions('proxy', options),
  'deployAll()': (options) => fillDeployAll([{ unit: () => {} }], options),
  'lock.acquire()': (options) => fillAcquireOptions(options),
  'map.watch()': (options) => fillWatchOptions(options),
  'sharedMap()': (options) => fillDataOptions('a shared map', options),
};

function messageOf(taker: string, option: string): string {
  let message = '';
  assert.throws(
    () => (takers[taker] ?? otherTakers[taker])?.({ [option]: 1 }),
    (error) => {
      assert.ok(hasCode(error, 'OPTION_INVALID'), `${taker} ${option}: ${error}`);
      message = error.message;
      return true;
    },
  );
  return message;
}

for (const [taker, wrong, hint] of [
  ['new Pool()', 'maxThreads', 'did you mean size: { max }?'],
  ['new Pool()', 'maxQueue', 'did you mean maxWaitingTasks?'],
  ['run.with()', 'times', 'what a function throws is never tried again'],
  ['pmap.stream()', 'limit', 'new Pool({ size }), which is given as option pool'],
  ['new Pool()', 'maxQueuedJobs', 'did you mean maxWaitingTasks?'],
  ['new Pool()', 'numThreads', 'did you mean size?'],
  ['new Pool()', 'filename', 'call the function itself, or task(url, name)'],
  ['new Pool()', 'argv', 'nothing is handed over'],
  ['new Pool()', 'SIZE', 'did you mean size?'],
  ['new Pool()', 'concurentTasksPerWorker', 'did you mean concurrentTasksPerWorker?'],
  ['new Pool()', 'timeout', 'timeoutMs is an option of a call: pool.with({ timeoutMs })'],
  ['run.with()', 'timeout', 'did you mean timeoutMs?'],
  ['run.with()', 'timeoutMS', 'did you mean timeoutMs?'],
  ['run.with()', 'on', 'did you mean onReport?'],
  ['run.with()', 'maxWorkers', 'new Pool({ size: { max } }), which is given as option pool'],
  ['pmap.stream()', 'concurrency', 'size is an option of a pool: new Pool({ size }), which'],
  ['pmap.stream()', 'preserveOrder', 'did you mean ordered?'],
  ['pmap.stream()', 'chunks', 'did you mean chunk?'],
  ['new Pool()', 'instances', 'did you mean size?'],
  ['new Pool()', 'max_memory_restart', 'did you mean maxRssBytes?'],
  ['run.with()', 'instances', 'size is an option of a pool: new Pool({ size })'],
  ['serve()', 'watch', 'use the flag --reload-on-change of manycore serve'],
  ['serve()', 'script', 'serve(app, options)'],
  ['serve()', 'node_args', 'manycore.config.json has nodeFlags'],
  ['serve()', 'uid', 'did you mean user?'],
  ['serve()', 'max_restarts', 'maxFailures limits failures in a row'],
  ['new Loops()', 'kill_timeout', 'did you mean drainTimeoutMs?'],
  ['lendWorkers()', 'kill_timeout', 'did you mean drainTimeoutMs?'],
  ['deploy()', 'kill_timeout', 'did you mean stopTimeoutMs?'],
  ['deploy()', 'listen_timeout', 'did you mean startTimeoutMs?'],
  ['bus.consumer()', 'local', 'did you mean isLocal?'],
  ['bus.consumer()', 'maxQueue', 'did you mean maxBuffered?'],
  ['bus.request()', 'abortSignal', 'did you mean signal?'],
  ['bus.openStream()', 'abortSignal', 'did you mean signal?'],
  ['bus.service()', 'maxBuffer', 'did you mean maxBuffered?'],
  ['bus.service()', 'isLocale', 'did you mean isLocal?'],
  ['bus.proxy()', 'timeout', 'did you mean timeoutMs?'],
  ['bus.proxy()', 'header', 'did you mean headers?'],
  ['deployAll()', 'stratgy', 'did you mean strategy?'],
  ['deployAll()', 'restart', 'did you mean restarts?'],
  ['lock.acquire()', 'lease', 'did you mean leaseMs?'],
  ['lock.acquire()', 'timeout', 'did you mean timeoutMs?'],
  ['map.watch()', 'keys', 'did you mean key?'],
  ['map.watch()', 'abortSignal', 'did you mean signal?'],
  ['sharedMap()', 'timeout', 'did you mean timeoutMs?'],
] as const) {
  test(`the error of ${taker} for ${wrong} hints: ${hint}`, () => {
    const [, actual] = messageOf(taker, wrong).split('; ');
    assert.ok(actual?.includes(hint), actual);
  });
}

/** Options of these packages, by package. */
const theirs: Readonly<Record<string, string>> = {
  piscina:
    'filename name minThreads maxThreads idleTimeout maxQueue concurrentTasksPerWorker atomics ' +
    'resourceLimits argv workerData taskQueue trackUnmanagedFds closeTimeout recordTiming ' +
    'stricterFIFO loadBalancer workerHistogram execArgv env transferList signal force',
  tinypool:
    'filename name minThreads maxThreads idleTimeout maxQueue concurrentTasksPerWorker resourceLimits argv ' +
    'execArgv env workerData taskQueue trackUnmanagedFds teardown transferList signal ' +
    'runtime terminateTimeout useAtomics maxMemoryLimitBeforeRecycle isolateWorkers serialization channel',
  workerpool:
    'minWorkers maxWorkers maxQueueSize workerType queueStrategy script workerTerminateTimeout forkArgs ' +
    'forkOpts workerOpts workerThreadOpts emitStdStreams onCreateWorker onTerminateWorker on metadata ' +
    'onTerminate abortListenerTimeout transfer',
  'p-map and p-queue':
    'concurrency stopOnError backpressure preserveOrder autoStart queueClass intervalCap interval ' +
    'carryoverIntervalCount carryoverConcurrencyCount strict timeout throwOnTimeout id priority batchSize',
  'jest-worker':
    'computeWorkerKey enableWorkerThreads exposedMethods forkOptions idleMemoryLimit maxRetries numWorkers ' +
    'setupArgs workerPath workerSchedulingPolicy resourceLimits taskQueue WorkerPool workerGracefulExitTimeout silent',
  'p-limit': 'concurrency rejectOnClear limit',
  'threads.js':
    'concurrency maxQueuedJobs name size timeout resourceLimits workerData _baseURL CORSWorkaround numThreads',
  poolifier:
    'enableEvents enableTasksQueue env errorHandler exitHandler messageHandler onlineHandler restartWorkerOnError ' +
    'settings startWorkers tasksQueueOptions workerChoiceStrategy workerChoiceStrategyOptions workerOptions ' +
    'agingFactor concurrency loadExponent size tasksFinishedTimeout tasksStealingOnBackPressure ' +
    'tasksStealingRatio taskStealing elu measurement runTime waitTime weights killBehavior killHandler ' +
    'maxInactiveTime taskFunction priority strategy workerNodeKeys abortSignal transferList',
  'fastq and async':
    'concurrency limit payload drain drained empty saturated unsaturated worker iteratee times interval ' +
    'errorFilter milliseconds',
};

for (const [library, options] of Object.entries(theirs)) {
  test(`an option of ${library} that is unknown here comes with a hint`, () => {
    for (const taker of Object.keys(takers)) {
      const own = ownNames(taker);
      for (const option of options.split(' ')) {
        if (own.has(option)) continue;
        const parts = messageOf(taker, option).split('; ');
        assert.ok(parts.length >= 2, `${taker} ${option}`);
        const meant = /^did you mean (\w+)/.exec(parts[1] ?? '')?.[1];
        assert.ok(meant === undefined || own.has(meant), parts[1]);
      }
    }
  });
}

/** Options in PM2's configuration of an app. */
const ofPm2 = (
  'name script args instances exec_mode cwd interpreter interpreter_args node_args watch ignore_watch env ' +
  'error_file out_file log_file merge_logs pid_file cron_restart min_uptime max_restarts restart_delay ' +
  'exp_backoff_restart_delay autorestart max_memory_restart kill_timeout listen_timeout wait_ready uid gid ' +
  'namespace stop_exit_codes instance_var increment_var'
).split(' ');

test('each option of PM2 that is unknown to serve() comes with a hint', () => {
  const own = ownNames('serve()');
  for (const option of ofPm2) {
    if (own.has(option)) continue;
    const [, hint] = messageOf('serve()', option).split('; ');
    assert.ok(hint !== undefined, option);
  }
});

test('a hint names only options that the same call accepts', () => {
  const all = Object.keys({ ...takers, ...otherTakers });
  const known = new Set([...all.flatMap((taker) => [...ownNames(taker)]), ...configOnly]);
  const tried = new Set([...ofPm2, ...Object.values(theirs).flatMap((list) => list.split(' '))]);
  for (const taker of Object.keys(otherTakers)) {
    const own = ownNames(taker);
    for (const option of [...tried, 'local', 'drainTimeout', 'timeout', 'reloadOnChange']) {
      if (own.has(option)) continue;
      const [, hint = ''] = messageOf(taker, option).split('; ');
      const meant = /^did you mean (\w+)/.exec(hint)?.[1];
      assert.ok(meant === undefined || own.has(meant), `${taker} ${option}: ${hint}`);
      if (hint.includes('manycore.config.json')) continue; // the hint names the place
      const named = hint.match(/\b[a-z]+[A-Z]\w*/g) ?? [];
      const wrong = named.filter((name) => known.has(name) && !own.has(name));
      assert.deepEqual(wrong, [], `${taker} ${option}: ${hint}`);
    }
  }
});

test('options of servers have no hints elsewhere', () => {
  for (const taker of ['new Loops()', 'lendWorkers()', 'deploy()', 'bus.send()']) {
    for (const option of ['watch', 'script', 'autorestart', 'exec_mode', 'uid']) {
      assert.doesNotMatch(messageOf(taker, option), /; /, `${taker} ${option}`);
    }
  }
});

/** Keys of manycore.config.json beside the options of serve(). */
const configOnly = ['app', 'apps', 'pidFile', 'reloadOnChange', 'nodeFlags'];

/** Options that a taker takes, as its error lists them. */
function ownNames(taker: string): Set<string> {
  const list = /there may be ([\w, ]+)/.exec(messageOf(taker, 'somethingElse'))?.[1];
  return new Set(list?.split(', '));
}

test('the error for an option of ours at the wrong place names the right one', () => {
  for (const right of Object.keys(takers)) {
    for (const wrong of Object.keys(takers)) {
      const taken = ownNames(wrong);
      for (const option of ownNames(right)) {
        if (taken.has(option) || option === 'pool') continue;
        const hint = messageOf(wrong, option).split('; ')[1] ?? '';
        // `channel` means something else in calls of tinypool.
        const isKnown =
          hint.startsWith(`${option} is an option of a `) ||
          option === 'channel' ||
          (option === 'timeoutMs' && /AbortSignal\.timeout/.test(hint));
        assert.ok(isKnown, `${wrong} ${option}: ${hint}`);
      }
    }
  }
});

test('a name that resembles no option gets no hint', () => {
  for (const name of ['', 'x', 'constructor', '__proto__', 'toString', 'somethingElse']) {
    assert.equal(hintFor(name, new Set(['retry', 'concurrentTasksPerWorker'])), '', name);
  }
});

test('options of anything else get no hints about pools', () => {
  assert.equal(hintFor('workers', new Set(['port', 'loops'])), '');
  assert.equal(hintFor('porrt', new Set(['port', 'loops'])), '; did you mean port?');
});

test('one wrong letter in a name of six and more is found', (t) => {
  const { integer, pick } = random(t);
  const names = new Set([
    'timeoutMs',
    'maxWaitingTasks',
    'idleTimeMs',
    'execArgv',
    'affinity',
    'startTimeoutMs',
  ]);
  for (let run = 0; run < 200; run += 1) {
    const name = pick([...names]);
    const at = integer(0, name.length);
    const wrong = pick([
      `${name.slice(0, at)}${name.slice(at + 1)}`,
      `${name.slice(0, at)}q${name.slice(at)}`,
      `${name.slice(0, at)}q${name.slice(at + 1)}`,
    ]);
    assert.equal(hintFor(wrong, names), `; did you mean ${name}?`, wrong);
  }
});
