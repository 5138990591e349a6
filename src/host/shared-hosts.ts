// Hosts that several parents share, as one parent sees them: it asks for a place in one, is given it
// by whoever started the host, and loses it when it closes the channel or the host ends.
// The host's side is shared-entry.ts, the side of whoever starts hosts shared-process.ts.

import type { Turns } from './turns.js';
import type { HostExit, HostHandle } from './types.js';

/** What a thread's program may use in place of hosts of its own. */
export interface SharedHosts {
  /** As many as there are at most; a thread has one place in each. */
  readonly count: number;
  /** Nobody gives places any more: the thread starts hosts of its own. */
  readonly isOver: boolean;
  /** Asks for a place; the descriptors of the channel (`channelFds`) stay the caller's. */
  join(fds: readonly number[]): SharedPlace;
}

export interface GivenPlace {
  /** Number of the host in `Turns`, and its process. */
  readonly host: number;
  readonly pid: number;
  /** What the host writes to its word while it works for this place. */
  readonly place: number;
}

/** A place in a shared host, which to its parent is a host. */
export class SharedPlace implements HostHandle {
  readonly kind = 'process';
  readonly pipe = undefined;
  onExit: (exit: HostExit) => void = () => {};
  onRetire: () => void = () => {};
  readonly #turns: Turns;
  readonly #part: () => void;
  #given: GivenPlace | undefined;

  /** `part` gives it back, also before it was given. */
  constructor(turns: Turns, part: () => void) {
    this.#turns = turns;
    this.#part = part;
  }

  get pid(): number | undefined {
    return this.#given?.pid;
  }

  /** Whether the host works for this parent, for another, or for none. */
  get turn(): 'ours' | 'elsewhere' | 'none' {
    if (this.#given === undefined) return 'none';
    const { host, place } = this.#given;
    const at = this.#turns.of(host);
    if (at === 0) return 'none';
    return at === place ? 'ours' : 'elsewhere';
  }

  given(place: GivenPlace): void {
    this.#given = place;
  }

  /** Called once. */
  ended(exit: HostExit): void {
    this.onExit(exit);
  }

  terminate(): void {
    this.#part();
  }

  /** Nothing of this thread keeps waiting for a host that is others' as well. */
  ref(): void {}

  /**
   * Ends the host, for all its parents: what had not begun there goes elsewhere. While it works for
   * another one, only the place is given back.
   */
  kill(): void {
    if (this.#given === undefined || this.turn === 'elsewhere') {
      this.#part();
      return;
    }
    try {
      process.kill(this.#given.pid, 'SIGKILL');
    } catch {
      // it has ended already, and will be heard of
    }
  }
}

let ofThread: SharedHosts | undefined;

/** From now on the pool of `run` in this thread has places instead of hosts of its own. */
export function useSharedHosts(hosts: SharedHosts): void {
  ofThread = hosts;
}

export function sharedHosts(): SharedHosts | undefined {
  return ofThread;
}
