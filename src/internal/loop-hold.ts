// Keeps the event loop alive while something waits that no handle of Node stands for, such as a task in
// a queue. Without it a program that only awaits ends in the middle, with its promise unsettled.

import { clearInterval, setInterval } from './timers.js';

/** The longest delay that a timer of Node takes (25 days). */
const maxTimerMs = 2 ** 31 - 1;

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
