// Finding about the thread pool of a program, from repeated samples: whether jobs wait in it, and whether
// more threads would help them.

import { type BlockingPoolReading, minBlockingThreads } from '../../../blocking-pool/index.js';
import { counted, type Finding, percent, usual } from './doctor-report.js';
import type { ProcessSamples } from './doctor-samples.js';

/** Least share of samples with waiting jobs for a problem: a single one is a short burst. */
const oftenWaiting = 0.2;
const nearlyAll = 0.9;

/** `cores`: number of cores that the program may use. */
export function poolFinding(samples: ProcessSamples, cores: number): Finding {
  const { pool, poolProblem } = samples;
  const what = 'blocking pool';
  const last = pool.at(-1);
  if (last?.threads === 0) return { what, state: 'ok', detail: 'nothing has used it yet' };
  if (samples.poolWaitMs !== undefined) return waitFinding(samples, samples.poolWaitMs, cores);
  if (last === undefined) {
    return { what, state: 'info', detail: poolProblem === '' ? 'not seen' : poolProblem };
  }
  if (last.waitingJobs === undefined) return threadsFinding(pool, last, cores);
  const waiting = pool.map(({ waitingJobs = 0 }) => waitingJobs);
  const [most, middle] = [Math.max(...waiting), usual(waiting)];
  const often = shareOf(waiting, (count) => count > 0);
  const detail =
    most === 0
      ? `${counted(last.threads, 'thread')}, no job waits`
      : `${counted(last.threads, 'thread')}; ${counted(middle, 'job')} ${middle === 1 ? 'waits' : 'wait'} (median of ${pool.length} samples, at most ${most})`;
  if (often < oftenWaiting) return { what, state: 'ok', detail };
  const idle = usual(pool.map(({ idleThreads }) => idleThreads));
  const lookups = usual(pool.map(({ waitingLookups = 0 }) => waitingLookups));
  if (idle > 0 && lookups > 0) return { what, state: 'problem', detail, ...lookupsWait(last) };
  return { what, state: 'problem', detail, ...jobsWait(samples, last.threads, cores) };
}

type Advice = Pick<Finding, 'cost' | 'remedy'>;

function lookupsWait({ threads }: BlockingPoolReading): Advice {
  return {
    cost: 'dns.lookup gets at most half of the threads: connections by name begin late',
    remedy: `UV_THREADPOOL_SIZE=${2 * threads}, dns.resolve, or agents that keep connections`,
  };
}

/** More threads help jobs that wait for something else; computing jobs only gain while a core is free. */
function jobsWait(samples: ProcessSamples, threads: number | undefined, cores: number): Advice {
  const cost = 'calls of fs, crypto, zlib and dns.lookup wait before they begin';
  const own = usual(samples.runnable);
  const demand = `${own === 0 ? 'none' : own} of its threads ${own > 1 ? 'need' : 'needs'} a core, ${cores} ${cores === 1 ? 'is' : 'are'} granted`;
  const size =
    threads === undefined
      ? 'a larger UV_THREADPOOL_SIZE than it has'
      : `UV_THREADPOOL_SIZE=${Math.max(2 * threads, cores)}`;
  const more = { cost, remedy: `start it with ${size}: ${demand}` };
  if (own < (threads ?? minBlockingThreads) / 2) return more;
  if (own >= cores) {
    const why = 'more threads would end nothing earlier';
    const remedy = `begin fewer jobs at a time, or give it more cores: ${demand}, so ${why}`;
    return { cost, remedy };
  }
  const all = usual(samples.machineRunnable);
  if (all >= samples.machineCores) {
    const why = `no core is free for it: on this machine ${counted(all, 'thread')} ${all > 1 ? 'need' : 'needs'} one of its ${samples.machineCores}`;
    return { cost, remedy: `begin fewer jobs at a time, here or in other programs: ${why}` };
  }
  return more;
}

const longWaitMs = 100;

/** Finding from a probe job, when jobs cannot be counted. The loop may see the end of the probe late. */
function waitFinding(samples: ProcessSamples, waitMs: number, cores: number): Finding {
  const what = 'blocking pool';
  const last = samples.pool.at(-1);
  const problem = last === undefined ? samples.poolProblem : last.problem;
  const detail = `a job of ours waited ${Math.ceil(waitMs)} ms for a thread; jobs cannot be counted: ${problem}`;
  const lateMs = samples.threads.find(({ thread }) => thread === 0)?.lag?.maxMs ?? 0;
  if (waitMs - lateMs < longWaitMs) return { what, state: 'ok', detail };
  return { what, state: 'problem', detail, ...jobsWait(samples, last?.threads, cores) };
}

/** Finding from thread states alone, when jobs cannot be counted and no probe ran. */
function threadsFinding(
  pool: readonly BlockingPoolReading[],
  { threads, problem }: BlockingPoolReading,
  cores: number,
): Finding {
  const what = 'blocking pool';
  const full = shareOf(pool, ({ idleThreads }) => idleThreads === 0);
  const detail = `${counted(threads, 'thread')}, none idle in ${percent(full)} of ${pool.length} samples; jobs cannot be counted: ${problem}`;
  if (full < nearlyAll) return { what, state: 'ok', detail };
  const cost = 'calls of fs, crypto, zlib and dns.lookup may wait before they begin';
  const remedy = `try UV_THREADPOOL_SIZE=${Math.max(2 * threads, cores)}`;
  return { what, state: 'advice', detail, cost, remedy };
}

function shareOf<T>(values: readonly T[], isSo: (value: T) => boolean): number {
  return values.length === 0 ? 0 : values.filter(isSo).length / values.length;
}
