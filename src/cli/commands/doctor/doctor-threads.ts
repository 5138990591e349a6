// Findings about loops and heaps, from stats of threads that use manycore; and for other programs a guess
// from their memory.

import { sizeText } from './doctor-machine.js';
import { type Finding, percent } from './doctor-report.js';
import type { ProcessSamples, SeenHeap, SeenThread } from './doctor-samples.js';

export function threadFindings(samples: ProcessSamples): Finding[] {
  return [
    ...samples.threads.flatMap((thread) => silentFinding(samples, thread)),
    ...samples.threads.flatMap(lagFinding),
    ...samples.threads.flatMap(heapFinding),
  ];
}

/** A computing thread is runnable in more than this share of the samples. */
const computesShare = 0.5;

function silentFinding(samples: ProcessSamples, { thread, role, isSilent }: SeenThread): Finding[] {
  if (!isSilent) return [];
  const { pid, mainShare, isStopped } = samples;
  const isMain = thread === 0;
  const share = isMain ? `; at work in ${percent(mainShare)} of the samples` : '';
  return [
    {
      what: 'blocked loop',
      state: 'problem',
      detail: `${role}: no answer within 1 s${share}`,
      cost: 'whatever comes to this loop waits: requests, timers, results of its pools',
      remedy: isStopped
        ? `kill -CONT ${pid}: the process is stopped`
        : isMain
          ? silentRemedy(mainShare)
          : `${computesRemedy}, or ${waitsRemedy}`,
    },
  ];
}

const computesRemedy = 'move what computes into run() or pmap()';
const waitsRemedy =
  'find the call that it waits in (execSync, Atomics.wait, a lock), and await one that does not block, or put it into run()';

function silentRemedy(mainShare: number): string {
  return mainShare > computesShare ? computesRemedy : waitsRemedy;
}

const longLagMs = 100;

function lagFinding({ role, lag }: SeenThread): Finding[] {
  if (lag === undefined || lag.p99Ms < longLagMs) return [];
  const [usual, most] = [lag.p99Ms, lag.maxMs].map(Math.round);
  return [
    {
      what: 'loop lag',
      state: 'problem',
      detail: `${role}: ${usual} ms (p99 of the last second, at most ${most} ms)`,
      cost: 'its timers, answers and results of its pools come so much later',
      remedy: `${computesRemedy}, and call nothing there that ends in Sync`,
    },
  ];
}

/** Share of the limit above which V8 collects more often and has little left for a peak. */
const nearLimit = 0.75;

function heapFinding({ thread, role, heap }: SeenThread): Finding[] {
  if (heap === undefined) return [];
  const what = 'heap limit';
  const { usedBytes, limitBytes, youngBytes } = heap;
  const detail = `${role}: ${sizeText(usedBytes)} of ${sizeText(limitBytes)} used`;
  const oldBytes = Math.max(limitBytes / 2, limitBytes - youngBytes);
  if (usedBytes < nearLimit * oldBytes) return [{ what, state: 'ok', detail }];
  const cost = 'V8 collects again and again, and ends the program at the limit';
  return [{ what, state: 'advice', detail, cost, remedy: heapRemedy(thread, role, heap) }];
}

function heapRemedy(thread: number, role: string, { usedBytes }: SeenHeap): string {
  const wanted = wantedMiB(usedBytes);
  const flag = `--max-old-space-size=${wanted}`;
  if (role.startsWith('loop')) return `"nodeFlags": ["${flag}"] in manycore.config.json`;
  if (thread === 0) return `start it with ${flag}`;
  return `resourceLimits: { maxOldGenerationSizeMb: ${wanted} } for its Worker; a flag ${flag} of the program stands above that`;
}

/**
 * Empty when threads report their heaps, or the limit is unknown. The heap's part of the memory is invisible
 * from outside: memory far below the limit rules out a full heap, more memory proves nothing. Each loop has a
 * heap with its own limit.
 */
export function guessedHeapFinding(
  { threads, ownBytes, heapLimit }: ProcessSamples,
  heaps: number,
): Finding[] {
  if (threads.length > 0 || heapLimit === undefined || ownBytes === 0) return [];
  const what = 'heap limit';
  const each = heaps === 1 ? '' : ` for each of ${heaps} loops`;
  const limit = `${sizeText(heapLimit.bytes)}${each} (${heapLimit.from})`;
  const detail = `${limit}; its memory is ${sizeText(ownBytes)}, heap and all else`;
  if (ownBytes < nearLimit * heapLimit.bytes * heaps) return [{ what, state: 'ok', detail }];
  const remedy = `check v8.getHeapStatistics() in it; if it is heap, --max-old-space-size=${wantedMiB(ownBytes / heaps)}`;
  const cost =
    'a guess, from outside: if most of it is heap, V8 collects again and again, and ends the program at the limit';
  return [{ what, state: 'advice', detail, cost, remedy }];
}

function wantedMiB(usedBytes: number): number {
  return Math.ceil((2 * usedBytes) / 1024 ** 2 / 256) * 256;
}
