// The places of one loop in the workers of its server: what its pool has instead of workers of its own.
// Not here: which worker that is (workers.ts).

import { callNative, requireNative } from '../native.js';
import { SharedPlace, type SharedWorkers, Turns, type WorkerExit } from '../worker/index.js';
import { copiesOf, copyOf } from './copies.js';
import type { FromLoop, ToLoop } from './protocol.js';

export interface PlacesOptions {
  /** How many workers there are at most. */
  readonly count: number;
  /** The memory of `Turns`; stays the caller's. */
  readonly turnsFd: number;
  /** Tells the process. */
  readonly post: (message: FromLoop) => void;
}

type PlaceMessage = Extract<ToLoop, { type: 'placed' | 'unplaced' }>;

export class Places implements SharedWorkers {
  readonly count: number;
  isOver = false;
  readonly #post: (message: FromLoop) => void;
  readonly #turns: Turns;
  readonly #places = new Map<number, SharedPlace>();
  #requests = 0;

  constructor({ count, turnsFd, post }: PlacesOptions) {
    this.count = count;
    this.#post = post;
    this.#turns = new Turns(callNative(() => requireNative().NativeBoard.open(copyOf(turnsFd))));
  }

  join(fds: readonly number[]): SharedPlace {
    this.#requests += 1;
    const request = this.#requests;
    const copies = copiesOf(fds);
    const place = new SharedPlace(this.#turns, () => this.#post({ type: 'part', request }));
    this.#places.set(request, place);
    this.#post({ type: 'join', request, fds: copies });
    return place;
  }

  receive(message: PlaceMessage): void {
    const place = this.#places.get(message.request);
    if (message.type === 'placed') {
      place?.given(message.given);
      return;
    }
    this.#places.delete(message.request);
    place?.ended(exitOf(message));
  }
}

function exitOf({ exitCode, signal, message }: PlaceMessage & { type: 'unplaced' }): WorkerExit {
  return { exitCode, signal, error: message === undefined ? undefined : new Error(message) };
}
