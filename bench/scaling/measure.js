// The figures of one contender on one number of workers: items per second, CPU and GC time per item.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import { treeCpuUs } from '../lib/processes.js';

const alone = new URL('./alone.js', import.meta.url);
/** One result in so many is computed again, here. */
const checkEvery = 20;

/** Maps the whole workload again and again while `windowMs` last, at least once. */
export async function measureContender({ items, map, run, gcMs }, { warmMs, windowMs }) {
  const warm = await repeat(run, warmMs);
  checkResults({ items, map }, warm.results);
  const gcBeforeMs = await gcMs();
  const cpuBeforeUs = treeCpuUs();
  const { runs, tookMs, results } = await repeat(run, windowMs);
  const cpuUs = treeCpuUs() - cpuBeforeUs;
  const gcTookMs = (await gcMs()) - gcBeforeMs;
  checkResults({ items, map }, results);
  const mapped = runs * items.length;
  return figuresOf({ mapped, perSecond: (mapped / tookMs) * 1000, cpuUs, gcTookMs });
}

/**
 * Measures the limit of the machine itself: as many processes as there would be workers, each with its share
 * of the items. All work during the same time, without messages between them.
 */
export async function measureAlone(name, processes, { warmMs, windowMs }) {
  const children = Array.from({ length: processes }, (_, index) =>
    fork(alone, [name, index, processes, warmMs, windowMs].map(String)),
  );
  const answers = () => Promise.all(children.map(answerOf));
  await answers(); // each is warm
  const done = answers();
  for (const child of children) child.send('begin');
  const shares = await done;
  const sum = (read) => shares.reduce((total, share) => total + read(share), 0);
  return figuresOf({
    mapped: sum(({ mapped }) => mapped),
    perSecond: sum(({ mapped, tookMs }) => (mapped / tookMs) * 1000),
    cpuUs: sum(({ cpuUs }) => cpuUs),
    gcTookMs: sum(({ gcTookMs }) => gcTookMs),
  });
}

async function answerOf(child) {
  const exited = once(child, 'exit').then(([code, signal]) => {
    throw new Error(`a process alone ended early (${signal ?? `exit code ${code}`})`);
  });
  const [message] = await Promise.race([once(child, 'message'), exited]);
  return message;
}

const figuresOf = ({ mapped, perSecond, cpuUs, gcTookMs }) => ({
  perSecond,
  cpuUsPerItem: cpuUs / mapped,
  gcUsPerItem: (gcTookMs * 1000) / mapped,
});

/** Runs until `windowMs` are over, at least once: `{ runs, tookMs, results }`, those of the last run. */
export async function repeat(run, windowMs) {
  const startMs = performance.now();
  let runs = 0;
  let results;
  let tookMs;
  do {
    results = await run();
    runs++;
    tookMs = performance.now() - startMs;
  } while (tookMs < windowMs);
  return { runs, tookMs, results };
}

/** Fails the measurement when a result is missing or not the one that this process computes. */
export function checkResults({ items, map }, results) {
  if (results.length !== items.length) {
    throw new Error(`wrong answer: ${results.length} results for ${items.length} items`);
  }
  for (let index = 0; index < items.length; index += checkEvery) {
    if (isDeepStrictEqual(results[index], map(items[index], index))) continue;
    throw new Error(`wrong answer for item ${index}`);
  }
}
