// The load: a timer that has a picture decoded, in the mode of the moment, so often that decoding
// takes a given share of one core. Every mode gets the same timer and the same picture; how many
// decodes it really finished is counted, because a mode that decodes less would look quicker.
import { openMode } from './modes/index.js';

// What a mode may take for its first picture, the start of a thread or process included.
const firstWithinMs = 30_000;

// A TV that falls behind leaves pictures out rather than pile them up.
const maxRunning = 2;

export class Decoding {
  #bytes;
  #intervalMs;
  #onImage;
  #mode;
  #timer;
  #dueMs = 0;
  #running = 0;
  #lastTurn = Promise.resolve(); // two visitors who switch at once take turns
  #counts = { decoded: 0, leftOut: 0, failed: 0 };

  /** `onImage(image)` is called with every decoded image. Nothing runs before `use`. */
  constructor(bytes, intervalMs, onImage) {
    this.#bytes = bytes;
    this.#intervalMs = intervalMs;
    this.#onImage = onImage;
  }

  /**
   * Decodes in this mode from now on, when what runs in the one before has ended. Settles when the
   * first picture is there; rejects, decoding nothing more, when there is none.
   */
  use(name) {
    this.#lastTurn = this.#lastTurn.catch(() => {}).then(() => this.#begin(name));
    return this.#lastTurn;
  }

  /** Ends decoding. Safe at any time and any number of times. */
  stop() {
    this.#lastTurn = this.#lastTurn.catch(() => {}).then(() => this.#end());
    return this.#lastTurn;
  }

  async #begin(name) {
    await this.#end();
    const mode = await openMode(name);
    this.#mode = mode;
    if (mode.decode === undefined) return;
    this.#onImage(await withinDeadline(mode.decode(this.#bytes), name));
    this.#dueMs = performance.now() + this.#intervalMs;
    this.#schedule();
  }

  async #end() {
    clearTimeout(this.#timer);
    const mode = this.#mode;
    this.#mode = undefined;
    while (this.#running > 0) await this.#settled();
    await mode?.close();
  }

  /** Counts since the last call: `{ decoded, leftOut, failed }`. */
  takeCounts() {
    const counts = this.#counts;
    this.#counts = { decoded: 0, leftOut: 0, failed: 0 };
    return counts;
  }

  #onSettled = () => {};

  #settled() {
    return new Promise((resolve) => {
      this.#onSettled = resolve;
    });
  }

  #schedule() {
    this.#timer = setTimeout(() => this.#tick(), Math.max(0, this.#dueMs - performance.now()));
  }

  // Due times stand one interval apart whatever a decode took, and no burst follows a late one.
  #tick() {
    const mode = this.#mode;
    this.#dueMs = Math.max(this.#dueMs + this.#intervalMs, performance.now());
    if (this.#running < maxRunning) void this.#decode(mode);
    else this.#counts.leftOut++;
    this.#schedule();
  }

  async #decode(mode) {
    this.#running++;
    try {
      this.#onImage(await mode.decode(this.#bytes));
      this.#counts.decoded++;
    } catch (error) {
      if (this.#counts.failed++ === 0)
        console.error(`decoding in mode ${mode.name} failed:`, error);
    } finally {
      this.#running--;
      this.#onSettled();
    }
  }
}

async function withinDeadline(image, name) {
  let timer;
  const deadline = new Promise((_resolve, reject) => {
    const error = new Error(`mode ${name} has decoded nothing in ${firstWithinMs / 1000} s`);
    timer = setTimeout(reject, firstWithinMs, error);
  });
  try {
    return await Promise.race([image, deadline]);
  } finally {
    clearTimeout(timer);
  }
}
