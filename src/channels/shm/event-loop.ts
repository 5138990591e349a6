// This thread's event loop, as its shm channels use it: one native hook for all of them. The hook calls
// `deliver` when any ring may have frames; finding the ring is cheap here.

import { setImmediate } from '../../lib/index.js';
import { callNative, type NativeLoop, requireNative } from '../../native.js';

/** A channel, as the loop calls it: it takes what is there, within limits. */
export interface Pumped {
  pump(): void;
}

class EventLoop {
  readonly native: NativeLoop;
  /** Never changed, only replaced: a round goes on with the list that it began with. */
  #channels: readonly Pumped[] = [];
  /** The start of the next round: a flooded channel must not come first every time. */
  #next = 0;

  constructor() {
    const binding = requireNative();
    this.native = callNative(() => new binding.NativeLoop(() => this.#deliver()));
  }

  add(channel: Pumped): void {
    this.#channels = [...this.#channels, channel];
  }

  remove(channel: Pumped): void {
    this.#channels = this.#channels.filter((each) => each !== channel);
  }

  // The hook reports a peer's close only once: no channel may be left out.
  #deliver(): void {
    const channels = this.#channels;
    const count = channels.length;
    const start = count === 0 ? 0 : this.#next++ % count;
    let turn = 0;
    try {
      for (; turn < count; turn++) channels[(start + turn) % count]?.pump();
    } finally {
      // A listener that throws ends this round.
      if (turn < count) setImmediate(() => this.#deliver());
    }
  }
}

let shared: EventLoop | undefined;

/** Returns the loop of this thread, made at first use. Throws `NATIVE_MISSING` or `NATIVE_REFUSED`. */
export function eventLoop(): EventLoop {
  shared ??= new EventLoop();
  return shared;
}

export type { EventLoop };
