// The load: a loop that decodes a picture, in the current mode, so often that decoding takes a given share of
// one core. Every mode gets the same picture at the same times, and one decode runs at a time, so no mode may
// use more than one core. Finished decodes are counted, because a mode that decodes less would seem quicker.
import { setTimeout as sleep } from 'node:timers/promises';
import { openMode } from './modes/index.js';

// Limit for the first picture of a mode, with the start of a thread or process.
const firstWithinMs = 30_000;

export class Decoding {
  #bytes;
  #intervalMs;
  #onImage;
  #end = async () => {};
  #lastTurn = Promise.resolve(); // two visitors may switch at once
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
    return this.#takeTurn(async () => {
      await this.#end();
      await this.#begin(await openMode(name));
    });
  }

  /** Ends decoding. Safe at any time and any number of times. */
  stop() {
    return this.#takeTurn(() => this.#end());
  }

  /** Counts since the last call: `{ decoded, leftOut, failed }`. */
  takeCounts() {
    const counts = this.#counts;
    this.#counts = { decoded: 0, leftOut: 0, failed: 0 };
    return counts;
  }

  #takeTurn(act) {
    this.#lastTurn = this.#lastTurn.catch(() => {}).then(act);
    return this.#lastTurn;
  }

  async #begin({ name, decode, close }) {
    const ending = new AbortController();
    let running = Promise.resolve();
    this.#end = async () => {
      ending.abort();
      await running;
      await close();
    };
    if (decode === undefined) return;
    this.#onImage(await withinDeadline(decode(this.#bytes), name));
    running = this.#run(decode, ending.signal);
  }

  // Due times are one interval apart whatever a decode took. A picture whose time has passed is decoded late;
  // when the next is due as well it is left out.
  async #run(decode, signal) {
    let dueMs = performance.now();
    while (!signal.aborted) {
      dueMs += this.#intervalMs;
      const waitMs = dueMs - performance.now();
      const missed = Math.max(0, Math.floor(-waitMs / this.#intervalMs));
      this.#counts.leftOut += missed;
      dueMs += missed * this.#intervalMs;
      await sleep(Math.max(0, waitMs), undefined, { signal }).catch(() => {});
      if (!signal.aborted) await this.#decodeOnce(decode);
    }
  }

  async #decodeOnce(decode) {
    try {
      this.#onImage(await decode(this.#bytes));
      this.#counts.decoded++;
    } catch (error) {
      if (this.#counts.failed++ === 0) console.error('decoding failed:', error);
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
