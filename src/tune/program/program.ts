// One run of the program in a configuration: started fresh, ready, warmed up, measured under load, and
// ended with all its processes. Each failure on the way is an error with its reason.

import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { CodedError, hasCode } from '../../errors.js';
import { abortError, messageOf } from '../../lib/index.js';
import { describeExit, mayLackHeap } from '../../worker/index.js';
import { type Load, type LoadRun, runIn, type Target } from '../load/load.js';
import type { LoadResult } from '../load/load-output.js';
import type { RunLength, RunStats } from '../load/run-stats.js';
import { parseFromRunner } from '../protocol.js';
import { Group, type GroupExit } from './group.js';
import type { Launch } from './launch.js';
import { hasWorkers, memoryOf } from './process-tree.js';

export interface RunOptions {
  readonly launch: Launch;
  /** `task`: the program is its own load. */
  readonly load: Load | 'task';
  /** URL of the program; `undefined`: at a port that it gets in `PORT`. */
  readonly url: string | undefined;
  readonly length: RunLength;
  readonly readyTimeoutMs: number;
  readonly signal: AbortSignal;
}

export interface RunResult {
  readonly stats: RunStats;
  /** True: workers of a pool were found. */
  readonly hasWorkers: boolean;
  /** Time of the run beside its load. */
  readonly overheadMs: number;
}

const pauseMs = 10;

/** Rejects with `TUNE_…` (not `TUNE_WRITE_FAILED`), `ABORTED`. */
export async function runOnce(options: RunOptions): Promise<RunResult> {
  const { launch, load, length, signal } = options;
  if (signal.aborted) throw abortError(signal);
  const begin = performance.now();
  const target = await targetOf(options.url, load === 'task');
  const group = new Group({
    command: launch.command,
    env: load === 'task' ? launch.env : { ...launch.env, PORT: String(target.port) },
    cores: launch.cores,
    hasIpc: load === 'task',
  });
  try {
    await (load === 'task' ? taskReady(group, options) : listening(group, target, options));
    const run: LoadRun = { ...target, seconds: length.warmUpSeconds, isWarmUp: true, signal };
    const loadIt = (each: LoadRun): Promise<LoadResult> =>
      aliveDuring(group, signal, (ended) =>
        load === 'task'
          ? runTask(group, { ...each, signal: ended })
          : load({ ...each, signal: ended }),
      );
    await loadIt(run);
    const measured = await measure(group, () =>
      loadIt({ ...run, seconds: length.seconds, isWarmUp: false }),
    );
    await group.end();
    const loadMs = 1000 * (length.warmUpSeconds + length.seconds);
    return { ...measured, overheadMs: Math.max(0, performance.now() - begin - loadMs) };
  } finally {
    await group.end();
  }
}

async function runTask(group: Group, run: LoadRun): Promise<LoadResult> {
  try {
    return await runIn(group, run, 'of the task');
  } catch (error) {
    if (!hasCode(error, 'TUNE_LOAD_FAILED')) throw error;
    throw new CodedError('TUNE_PROGRAM_FAILED', messageOf(error), { cause: error });
  }
}

async function measure(
  group: Group,
  load: () => Promise<LoadResult>,
): Promise<{ stats: RunStats; hasWorkers: boolean }> {
  const cpuBefore = cpuSecondsOf(group);
  const begin = performance.now();
  const { requests, errors, seconds, p50Ms, p99Ms } = await load();
  const tookSeconds = (performance.now() - begin) / 1000;
  const tree = group.tree;
  const cpuCores = (cpuSecondsOf(group) - cpuBefore) / tookSeconds;
  const loadSeconds = seconds ?? tookSeconds;
  return {
    stats: {
      perSecond: requests / loadSeconds,
      errorsPerSecond: errors / loadSeconds,
      p50Ms,
      p99Ms,
      cpuCores: tree.length === 0 ? undefined : Math.max(0, cpuCores),
      ...memoryOf(tree),
    },
    hasWorkers: hasWorkers(tree),
  };
}

function cpuSecondsOf(group: Group): number {
  return group.tree.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0);
}

/** Runs `work` with a signal that aborts when the program ends; its end is then the error. */
async function aliveDuring<T>(
  group: Group,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  void group.ended.then(() => controller.abort(new Error('the program has ended')));
  try {
    const result = await work(AbortSignal.any([signal, controller.signal]));
    if (!group.hasEnded) return result;
  } catch (error) {
    if (signal.aborted) throw error;
    // The program may have crashed: its connections end before its exit is reported.
    if (!group.hasEnded) await Promise.race([group.ended, sleep(crashMs)]);
    if (!group.hasEnded) throw error;
  }
  throw ended(group, await group.ended, 'under load');
}

/** Time after a failed load in which the exit of the program may be reported, in ms. */
const crashMs = 200;

function ended(group: Group, exit: GroupExit, when: string): CodedError {
  const words = group.lastOutput === '' ? '' : `, and printed "${group.lastOutput.slice(0, 200)}"`;
  const how =
    exit.error === undefined
      ? `it ended ${describeExit({ ...exit, error: undefined })} ${when}`
      : `it cannot be started (${exit.error.message})`;
  const heap = mayLackHeap({ ...exit, error: exit.error }) ? ', as after a full heap' : '';
  return new CodedError(
    'TUNE_PROGRAM_FAILED',
    `the program ended: ${how}${heap}${words}; run it by hand under the same load`,
  );
}

async function targetOf(url: string | undefined, isTask: boolean): Promise<Target> {
  if (isTask) return { url: '', port: 0 };
  if (url === undefined) {
    const port = await freePort();
    return { url: `http://127.0.0.1:${port}/`, port };
  }
  const target = { url, port: portOf(url) };
  if (await accepts(hostOf(url), target.port)) {
    throw new CodedError(
      'TUNE_PORT_TAKEN',
      `something answers at ${url} already: end it, or leave --url out for a port that is free`,
    );
  }
  return target;
}

function portOf(url: string): number {
  const { port, protocol } = new URL(url);
  return port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);
}

function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^\[(.*)\]$/, '$1');
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
}

function accepts(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const settle = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('connect', () => settle(true));
    socket.once('error', () => settle(false));
    socket.setTimeout(1000, () => settle(false));
  });
}

async function listening(
  group: Group,
  { url, port }: Target,
  { readyTimeoutMs, signal }: RunOptions,
): Promise<void> {
  const end = performance.now() + readyTimeoutMs;
  for (;;) {
    if (signal.aborted) throw abortError(signal);
    if (group.hasEnded) throw ended(group, await group.ended, 'before it was ready');
    if (await accepts(hostOf(url), port)) return;
    if (performance.now() > end) throw notReady(`nothing answers at ${url}`, group, readyTimeoutMs);
    await sleep(pauseMs);
  }
}

function notReady(what: string, group: Group, readyTimeoutMs: number): CodedError {
  const words = group.lastOutput === '' ? '' : `, and the program printed "${group.lastOutput}"`;
  return new CodedError(
    'TUNE_NOT_READY',
    `${what} after ${readyTimeoutMs / 1000} s${words}: let it listen at the PORT of its environment, or give --url, or --ready-seconds`,
  );
}

async function taskReady(group: Group, { readyTimeoutMs, signal }: RunOptions): Promise<void> {
  let problem: string | undefined;
  let isReady = false;
  group.child.on('message', (value) => {
    const message = parseFromRunner(value);
    if (message?.type === 'ready') isReady = true;
    if (message?.type === 'failed') problem = message.message;
  });
  const end = performance.now() + readyTimeoutMs;
  while (!isReady) {
    if (signal.aborted) throw abortError(signal);
    if (problem !== undefined) {
      throw new CodedError('TUNE_PROGRAM_FAILED', `the task cannot be loaded: ${problem}`);
    }
    if (group.hasEnded) throw ended(group, await group.ended, 'before it was ready');
    if (performance.now() > end) throw notReady('the task is not ready', group, readyTimeoutMs);
    await sleep(pauseMs);
  }
}
