// Timers of one instance, which end with it.

import { checkFunction, clearTimeout, setInterval, setTimeout } from '../../lib/index.js';
import type { UnitContext } from '../types.js';

/** Ended timers are dropped whenever their number has doubled, from this one on. */
const leastDropped = 64;

export class UnitTimers {
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #lateUse: (what: string) => Error;
  #dropAt = leastDropped;
  #isClosed = false;

  /** `lateUse` makes the error for a use of `what` after `close`. */
  constructor(lateUse: (what: string) => Error) {
    this.#lateUse = lateUse;
  }

  readonly setTimeout: UnitContext['setTimeout'] = (callback, ms, ...args) => {
    this.#check('setTimeout');
    checkFunction('callback', callback);
    const timers = this.#timers;
    const timer = setTimeout(function (this: NodeJS.Timeout) {
      timers.delete(timer);
      Reflect.apply(callback, this, args);
    }, ms);
    return this.#add(timer);
  };

  readonly setInterval: UnitContext['setInterval'] = (callback, ms, ...args) => {
    this.#check('setInterval');
    checkFunction('callback', callback);
    return this.#add(setInterval(callback, ms, ...args));
  };

  #check(what: string): void {
    if (this.#isClosed) throw this.#lateUse(`${what} of its context`);
  }

  #add(timer: NodeJS.Timeout): NodeJS.Timeout {
    if (this.#timers.size >= this.#dropAt) this.#drop();
    this.#timers.add(timer);
    const refresh = timer.refresh.bind(timer);
    timer.refresh = () => {
      this.#check('timers');
      this.#timers.add(timer); // it may have fired before
      return refresh();
    };
    return timer;
  }

  /** Node's `clearTimeout` reports nothing, and the timer stays in this set until then. */
  #drop(): void {
    for (const each of this.#timers) {
      if (Reflect.get(each, '_destroyed') === true) this.#timers.delete(each);
    }
    this.#dropAt = Math.max(leastDropped, this.#timers.size * 2);
  }

  /** Ends those that there are. */
  end(): void {
    for (const each of this.#timers) clearTimeout(each);
    this.#timers.clear();
  }

  /** Ends all, and refuses new ones. */
  close(): void {
    this.#isClosed = true;
    this.end();
  }
}
