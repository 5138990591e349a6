// Calls one after the other, and many at once: the two loops that most cases time.
import { treeCpuUs } from './processes.js';

/**
 * Warm-up of a loop of short calls before it is timed. V8 compiles its path after some 100,000 calls, for
 * rivals as for us.
 */
export const warmUpMs = 2000;

/** Value at `share` of the sorted `times`; times are in ms, the answer in µs. */
function quantileUs(times, share) {
  return times[Math.min(times.length - 1, Math.floor(times.length * share))] * 1000;
}

/** Sorted copy of what was recorded, summed up: µs. */
export function summarize(timesMs) {
  const times = Float64Array.from(timesMs).sort();
  return { p50Us: quantileUs(times, 0.5), p99Us: quantileUs(times, 0.99) };
}

/**
 * Times single calls, each awaited before the next; `check(answer, turn)` throws for a wrong answer,
 * outside the time.
 */
export async function timeCalls(
  call,
  check,
  { warmMs, windowMs, minCalls = 5, maxCalls = 400_000 },
) {
  const times = new Float64Array(maxCalls);
  let turn = 0;
  let now = performance.now();
  for (const end = now + warmMs; now < end || turn < minCalls; now = performance.now()) {
    check(await call(turn), turn++);
  }
  let count = 0;
  for (const end = now + windowMs; (now < end || count < minCalls) && count < maxCalls; count++) {
    const before = performance.now();
    const answer = await call(turn);
    now = performance.now();
    times[count] = now - before;
    check(answer, turn++);
  }
  return summarize(times.subarray(0, count));
}

/** Keeps `waiting` calls unanswered for a while: calls per second, and CPU of the whole tree. */
export async function countCalls(call, waiting, { warmMs, windowMs }) {
  await keepCalling(call, waiting, warmMs);
  const cpuBefore = treeCpuUs();
  const { calls, tookMs } = await keepCalling(call, waiting, windowMs);
  return {
    perSecond: (calls / tookMs) * 1000,
    cpuUsPerCall: (treeCpuUs() - cpuBefore) / calls,
  };
}

/** Runs `waiting` lanes of calls until the time is over, then waits for the last of each lane. */
function keepCalling(call, waiting, windowMs) {
  return new Promise((resolve, reject) => {
    const start = performance.now();
    let calls = 0;
    let lanesOpen = waiting;
    let isOver = false;
    const advance = () => {
      calls++;
      // The clock is read now and then only: at millions of calls per second it would show.
      if (!isOver && (waiting < 16 || (calls & 63) === 0)) {
        isOver = performance.now() - start >= windowMs;
      }
      if (!isOver) call(calls).then(advance, reject);
      else if (--lanesOpen === 0) resolve({ calls, tookMs: performance.now() - start });
    };
    for (let lane = 0; lane < waiting; lane++) call(lane).then(advance, reject);
  });
}

/** Fails the measurement when a contender answers something else. */
export function expectSame(got, wanted) {
  if (got !== wanted) throw new Error(`wrong answer: ${String(got)} instead of ${String(wanted)}`);
}
