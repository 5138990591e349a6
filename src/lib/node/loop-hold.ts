// Keeps the event loop alive while something waits that no handle of Node stands for, such as a task in
// a queue. Without it a program that only awaits ends in the middle, with its promise unsettled.

import { clearInterval, setInterval } from './timers.js';

/** The longest delay that a timer of Node takes (25 days). */
const maxTimerMs = 2 ** 31 - 1;

/** Promises of `whileHeld` that are not settled. */
let pending = 0;

/** Settles as `work`, and holds the loop until then. For what settles in the end, whatever the program does. */
export async function whileHeld<T>(work: Promise<T>): Promise<T> {
  pending += 1;
  ofPromises.hold();
  try {
    return await work;
  } finally {
    pending -= 1;
    if (pending === 0) ofPromises.end();
  }
}

export class LoopHold {
  /** A timer, because it costs nothing while it waits and may be referenced and not. */
  #timer: NodeJS.Timeout | undefined;
  #isHeld = false;

  /** Holds the loop until `release`, however often it is called. */
  hold(): void {
    if (this.#isHeld) return;
    this.#isHeld = true;
    this.#timer ??= setInterval(() => {}, maxTimerMs);
    this.#timer.ref();
  }

  release(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#timer?.unref();
  }

  /** Releases it for good. */
  end(): void {
    this.release();
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

const ofPromises = new LoopHold();
