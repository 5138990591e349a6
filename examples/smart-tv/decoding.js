// The load: a timer that has a picture decoded, in the mode of the moment, so often that decoding
// takes a given share of one core. Every mode gets the same timer and the same picture; how many
// decodes it really finished is counted, because a mode that decodes less would look quicker.
import { openMode } from './modes/index.js';

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

  /** Decodes in this mode from now on; what runs in the one before is awaited, then it is closed. */
  use(name) {
    this.#lastTurn = this.#lastTurn
      .catch(() => {})
      .then(async () => {
        await this.#end();
        this.#mode = await openMode(name);
        if (this.#mode.decode === undefined) return;
        this.#dueMs = performance.now();
        this.#schedule();
      });
    return this.#lastTurn;
  }

  /** Ends decoding. Safe at any time and any number of times. */
  stop() {
    this.#lastTurn = this.#lastTurn.catch(() => {}).then(() => this.#end());
    return this.#lastTurn;
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
