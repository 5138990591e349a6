// The thumb: a process of its own that presses the play button at a steady rate and takes the time
// of each answer. Its own process, so that what the server computes does not disturb the clock. Open
// loop: the times of the presses are fixed beforehand and the response time counts from there, so a
// server that hangs does not slow the presses that would have shown it. It is told by messages,
// `{ url, ratePerSecond, seconds, seed }` or `'stop'`, and sends `{ samples }` four times a second,
// pairs of [due in ms since 1970, response time in ms], then `{ done, failed, lagP95Ms }`.
import { Agent, request } from 'node:http';
import { quantile } from 'd3-array';

// A timer of Node's is up to a millisecond late, more than a whole answer takes: the last stretch
// before a press is spent looking at the clock, with the sockets still served between two looks.
const watchClockMs = 1.5;
const reportEveryMs = 250;
const answerWithinMs = 20_000;

const agent = new Agent({ keepAlive: true });
let current;

process.on('message', (order) => {
  current?.stop();
  current = order === 'stop' ? undefined : startPressing(order);
});
process.on('disconnect', () => process.exit());
process.on('SIGINT', () => {}); // Ctrl-C reaches us too; the server ends us by disconnecting

function startPressing({ url, ratePerSecond, seconds, seed }) {
  const state = { samples: [], lagsMs: [], scheduled: 0, over: 0, failed: 0, timer: undefined };
  const slotMs = 1000 / ratePerSecond;
  const startMs = performance.now() + 20;
  const count = Math.max(1, Math.round(seconds * ratePerSecond));
  const jitter = makeUniform(seed);
  let isStopped = false;

  const reporter = setInterval(report, reportEveryMs);
  scheduleNext();
  return { stop };

  function report() {
    if (state.samples.length > 0) process.send({ samples: state.samples.splice(0) });
  }

  function stop() {
    isStopped = true;
    clearTimeout(state.timer);
    clearInterval(reporter);
    report();
  }

  // One press in each slot, at a random place in it: a plain beat could fall in step with decoding.
  function scheduleNext() {
    if (state.scheduled === count) return;
    const dueMs = startMs + (state.scheduled++ + jitter()) * slotMs;
    waitUntil(dueMs, () => {
      press(dueMs);
      scheduleNext();
    });
  }

  function waitUntil(dueMs, then) {
    const leftMs = dueMs - performance.now();
    if (isStopped) return;
    if (leftMs > watchClockMs) {
      state.timer = setTimeout(waitUntil, Math.max(1, leftMs - watchClockMs), dueMs, then);
    } else if (leftMs > 0) {
      setImmediate(waitUntil, dueMs, then);
    } else {
      then();
    }
  }

  function press(dueMs) {
    state.lagsMs.push(performance.now() - dueMs);
    let isOver = false;
    const end = (isAnswered) => {
      if (isOver) return;
      isOver = true;
      const responseMs = performance.now() - dueMs;
      if (isAnswered) state.samples.push([performance.timeOrigin + dueMs, responseMs]);
      else state.failed++;
      if (++state.over === count) finish();
    };
    const call = request(url, { method: 'POST', agent, timeout: answerWithinMs }, (answer) => {
      answer.resume();
      answer.on('end', () => end(answer.statusCode === 200));
    });
    call.on('timeout', () => call.destroy());
    call.on('error', () => end(false));
    call.on('close', () => end(false));
    call.end();
  }

  function finish() {
    if (isStopped) return;
    stop();
    process.send({ done: true, failed: state.failed, lagP95Ms: quantile(state.lagsMs, 0.95) ?? 0 });
  }
}

/** Numbers in [0, 1) that are the same in every run. */
function makeUniform(seed) {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}
