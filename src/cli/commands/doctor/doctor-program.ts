// Findings about a running program: problems, their cost and their remedies. Each advice stands beside the
// number that it follows from. This file covers values seen from outside; the thread pool is in
// doctor-pool.ts, values reported by threads are in doctor-threads.ts and doctor-transactions.ts.
// Not here: sampling (doctor-samples.ts).

import { poolFinding } from './doctor-pool.js';
import { counted, type Finding, percent, usual } from './doctor-report.js';
import type { ProcessSamples } from './doctor-samples.js';
import { guessedHeapFinding, threadFindings } from './doctor-threads.js';
import { transactionFindings } from './doctor-transactions.js';

/** `cores`: granted to this process; `loops`: number of event loops in the program, 0: unknown. */
export function programFindings(samples: ProcessSamples, cores: number, loops: number): Finding[] {
  const count = coresOf(samples, cores);
  return [
    poolFinding(samples, count),
    ...mainThreadFinding(samples, loops),
    ...threadFindings(samples),
    ...transactionFindings(samples.transactions),
    ...threadsOnCores(samples, count),
    ...quotaFinding(samples),
    ...guessedHeapFinding(samples, Math.max(loops, 1)),
    ...descriptorsFinding(samples),
    ...containerFinding(samples),
  ];
}

/** Cores of the program, at most ours: with more than ours, other users of them are unknown here. */
function coresOf({ allowedCores, quota }: ProcessSamples, cores: number): number {
  const allowed = allowedCores === 0 ? cores : allowedCores;
  return Math.max(1, Math.min(cores, allowed, Math.ceil(quota?.cores ?? cores)));
}

const nearlyAll = 0.9;

/** Empty when another finding already reports the main thread as silent. */
function mainThreadFinding({ mainShare, threads }: ProcessSamples, loops: number): Finding[] {
  if (threads.some(({ thread, isSilent }) => thread === 0 && isSilent)) return [];
  const what = 'main thread';
  const detail = `at work in ${percent(mainShare)} of the samples`;
  if (mainShare < nearlyAll || loops > 1) return [{ what, state: 'ok', detail }];
  const cost = 'while it computes its event loop handles nothing else, and uses one core at most';
  const remedy =
    loops === 0
      ? 'move what computes into run() or pmap(), or serve it with manycore serve'
      : 'move what computes into run() or pmap(), or add processes: manycore scale';
  return [{ what, state: 'advice', detail, cost, remedy }];
}

/** Empty when there are cores for all threads, or the program needs none. */
function threadsOnCores(samples: ProcessSamples, cores: number): Finding[] {
  const what = 'threads';
  const [own, all] = [usual(samples.runnable), usual(samples.machineRunnable)];
  const cost = 'they take turns: whatever each of them does ends later';
  if (own > cores) {
    const detail = `${own} of its threads need a core at a time, ${cores} ${cores === 1 ? 'is' : 'are'} granted`;
    const remedy = `begin less at a time, and have ${counted(cores, 'thread')} that compute: workers, jobs`;
    return [{ what, state: 'advice', detail, cost, remedy }];
  }
  if (own === 0 || all <= samples.machineCores) return [];
  const detail = `${all} threads of this machine need one of its ${counted(samples.machineCores, 'core')}, ${own} of them ${own === 1 ? 'is' : 'are'} of this program`;
  const remedy = 'run less beside it, or keep the others to cores of their own (taskset)';
  return [{ what, state: 'advice', detail, cost, remedy }];
}

/** Least share of halted periods for a problem: any burst uses up a quota now and then. */
const oftenHalted = 0.2;

function quotaFinding({ quota }: ProcessSamples): Finding[] {
  if (quota === undefined) return [];
  const what = 'CPU quota';
  const { cores, periods, halts } = quota;
  const detail = `${cores.toFixed(2)} cores, used up in ${halts} of ${counted(periods, 'period')}`;
  if (periods === 0 || halts / periods < oftenHalted) return [{ what, state: 'ok', detail }];
  const cost =
    'the kernel halts all its threads until the next period, loops too, however short a request is';
  const remedy = `raise the quota, or run fewer threads at a time: ${counted(Math.ceil(cores), 'worker')}`;
  return [{ what, state: 'problem', detail, cost, remedy }];
}

const fewLeft = 0.8;

function descriptorsFinding({ openDescriptors, maxDescriptors }: ProcessSamples): Finding[] {
  if (openDescriptors === 0) return [];
  const what = 'descriptors';
  const detail = `${openDescriptors} of ${maxDescriptors} open`;
  if (openDescriptors < fewLeft * maxDescriptors) return [{ what, state: 'ok', detail }];
  const cost = 'at the limit no file opens and no connection is accepted (EMFILE)';
  const remedy = 'ulimit -Hn 65536 before it is started, or close what it leaves open';
  return [{ what, state: 'problem', detail, cost, remedy }];
}

function containerFinding({ isContained }: ProcessSamples): Finding[] {
  if (!isContained) return [];
  const detail = 'it has a PID namespace of its own: inside, its processes have other numbers';
  return [{ what: 'container', state: 'info', detail }];
}
