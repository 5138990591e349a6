// The thumb: a process of its own that presses the play button at a steady rate and times each answer. It has
// its own process, so that the server's computation does not disturb the clock. Open loop: the times of the
// presses are fixed beforehand and the response time counts from there. So a server that hangs does not slow
// down the presses that would show it.
// Receives `{ url, ratePerSecond, seconds, seed }` or `'stop'`. Sends `{ samples }` four times a second:
// pairs of [due in ms since 1970, response time in ms]. Then sends `{ done, failed, lagP95Ms }`.
import { Agent, request } from 'node:http';
import { quantile } from 'd3-array';

// A timer of Node's is up to a millisecond late, more than a whole answer takes. The last stretch before a
// press is spent polling the clock, and the sockets are still served between two polls.
const watchClockMs = 1.5;
const reportEveryMs = 250;
const answerWithinMs = 20_000;

const agent = new Agent({ keepAlive: true });
let current;

process.on('message', (order) => {
  current?.stop();
  current = order === 'stop' ? undefined : new Pressing(order);
  current?.start();
});
process.on('disconnect', () => process.exit());
process.on('SIGINT', () => {}); // Ctrl-C reaches us too; the server ends us by disconnecting

class Pressing {
  #url;
  #slotMs;
  #startMs;
  #count;
  #jitter;
  #timer;
  #reporter;
  #isStopped = false;
  #scheduled = 0;
  #over = 0;
  #failed = 0;
  #samples = [];
  #lagsMs = [];

  constructor({ url, ratePerSecond, seconds, seed }) {
    this.#url = url;
    this.#slotMs = 1000 / ratePerSecond;
    this.#startMs = performance.now() + 20;
    this.#count = Math.max(1, Math.round(seconds * ratePerSecond));
    this.#jitter = makeUniform(seed);
  }

  start() {
    this.#reporter = setInterval(() => this.#report(), reportEveryMs);
    this.#scheduleNext();
  }

  stop() {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    clearInterval(this.#reporter);
    this.#report();
  }

  // One press in each slot, at a random place in it: a plain beat could fall in step with decoding.
  #scheduleNext() {
    if (this.#scheduled === this.#count) return;
    this.#waitUntil(this.#startMs + (this.#scheduled++ + this.#jitter()) * this.#slotMs);
  }

  #waitUntil(dueMs) {
    const leftMs = dueMs - performance.now();
    if (this.#isStopped) return;
    if (leftMs > watchClockMs) {
      const sleepMs = Math.max(1, leftMs - watchClockMs);
      this.#timer = setTimeout(() => this.#waitUntil(dueMs), sleepMs);
    } else if (leftMs > 0) {
      setImmediate(() => this.#waitUntil(dueMs));
    } else {
      this.#press(dueMs);
      this.#scheduleNext();
    }
  }

  #press(dueMs) {
    this.#lagsMs.push(performance.now() - dueMs);
    let isOver = false; // one request can end in several events
    const end = (isAnswered) => {
      if (!isOver) this.#note(dueMs, isAnswered);
      isOver = true;
    };
    const call = request(
      this.#url,
      { method: 'POST', agent, timeout: answerWithinMs },
      (answer) => {
        answer.resume();
        answer.on('end', () => end(answer.statusCode === 200));
      },
    );
    call.on('timeout', () => call.destroy());
    call.on('error', () => end(false));
    call.on('close', () => end(false));
    call.end();
  }

  #note(dueMs, isAnswered) {
    const responseMs = performance.now() - dueMs;
    if (isAnswered) this.#samples.push([performance.timeOrigin + dueMs, responseMs]);
    else this.#failed++;
    if (++this.#over < this.#count || this.#isStopped) return;
    this.stop();
    const lagP95Ms = quantile(this.#lagsMs, 0.95) ?? 0;
    process.send({ done: true, failed: this.#failed, lagP95Ms });
  }

  #report() {
    if (this.#samples.length > 0) process.send({ samples: this.#samples.splice(0) });
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
