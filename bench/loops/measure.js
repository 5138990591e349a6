// Timings on the sending side, for every carrier of messages.
import { expectSame, summarize } from '../lib/measure.js';

const mostTimes = 4_000_000;
export const largeBytes = 16 * 2 ** 20;
const batch = 10_000;
const times = new Float64Array(mostTimes);
let sent = 0;

/** Requests one after the other for so long. */
export async function timeRequests(request, ms) {
  const end = performance.now() + ms;
  let calls = 0;
  for (let now = performance.now(); now < end && calls < mostTimes; calls += 1) {
    const before = performance.now();
    const answer = await request(calls);
    now = performance.now();
    times[calls] = now - before;
    expectSame(answer, calls);
  }
  return { calls, ...summarize(times.subarray(0, calls)) };
}

/** Requests, with these bytes, changed each time, the first of them. */
export function timeLarge(request, bytes, ms) {
  const ask = async (number) => {
    bytes[0] = number;
    expectSame(await request(bytes), bytes[0]);
    return number;
  };
  return timeRequests(ask, ms);
}

/** Sends messages for `ms`, in batches; the other side acknowledges each batch. */
export async function countOneWay({ send, drained, counted }, ms) {
  const start = performance.now();
  let calls = 0;
  do {
    for (let at = 0; at < batch; at += 1) if (!send(at)) await drained();
    calls += batch;
    sent += batch;
    expectSame(await counted(), sent);
  } while (performance.now() - start < ms);
  return { calls, perSecond: (calls / (performance.now() - start)) * 1000 };
}
