// The states of a thing with a life (worker, pool, unit) and the one function that changes them. A step
// that the table does not allow is a bug of ours, and is thrown where it happens: found late, it
// would be a task that settles twice or a process that nobody stops.

import { CodedError } from '../errors.js';

/** From each state, the states that may follow. A state with none is the end. */
export type Steps<State extends string> = { readonly [state in State]: readonly State[] };

/** Holds a state; `what` names the thing in the error, "worker 3". */
export class Lifecycle<State extends string> {
  readonly #what: string;
  readonly #steps: Steps<State>;
  #state: State;

  constructor(what: string, first: State, steps: Steps<State>) {
    this.#what = what;
    this.#steps = steps;
    this.#state = first;
  }

  get state(): State {
    return this.#state;
  }

  /** True: the state is one of these. */
  is(...states: readonly State[]): boolean {
    return states.includes(this.#state);
  }

  /** Takes the step, or throws `INTERNAL_STATE` and changes nothing. */
  transition(to: State): void {
    if (!this.tryTransition(to)) {
      throw new CodedError(
        'INTERNAL_STATE',
        `${this.#what} cannot go from "${this.#state}" to "${to}": please report this bug`,
      );
    }
  }

  /** Takes the step if it is allowed from here; false and no change otherwise. */
  tryTransition(to: State): boolean {
    if (!this.#steps[this.#state].includes(to)) return false;
    this.#state = to;
    return true;
  }
}
