// The worker's half of its CPU profiles (profile-requests.ts). It profiles its own thread, and so begins and ends
// a profile when its loop turns: between two tasks, or when one awaits.

import { profileThread } from '../../lib/index.js';
import type { Link } from '../link.js';
import { frame } from '../protocol.js';

export class OwnProfiles {
  readonly #link: Link;
  readonly #givesUp = new Map<number, () => void>();

  constructor(link: Link) {
    this.#link = link;
  }

  /** Begins the profile of this number; 0 `seconds` give it up. */
  receive(number: number, seconds: unknown): void {
    this.#giveUp(number);
    if (typeof seconds !== 'number' || seconds <= 0) return;
    const giveUp = profileThread(
      seconds,
      (answer) => {
        if (answer.started !== true) this.#givesUp.delete(number);
        this.#link.post(frame.profiled, 0, number, answer);
      },
      // A worker with nothing else alive parks, and its timers with it.
      { isHeld: true },
    );
    this.#givesUp.set(number, giveUp);
  }

  /** Gives all up: the parent is gone. */
  end(): void {
    for (const number of this.#givesUp.keys()) this.#giveUp(number);
  }

  #giveUp(number: number): void {
    this.#givesUp.get(number)?.();
    this.#givesUp.delete(number);
  }
}
