// This thread's event loop, as its shm channels see it: one native hook for all of them. The hook
// calls `deliver` when any ring may have news; which one is cheap to find out here.

import { callNative, type NativeLoop, requireNative } from '../../native.js';

/** What the loop asks of a channel: take what is there, within limits. */
export interface Pumped {
  pump(): void;
}

class EventLoop {
  readonly native: NativeLoop;
  readonly #channels: Pumped[] = [];
  /** Where the next round starts: a channel that floods must not come first every time. */
  #next = 0;

  constructor() {
    const binding = requireNative();
    this.native = callNative(() => new binding.NativeLoop(() => this.#deliver()));
  }

  add(channel: Pumped): void {
    this.#channels.push(channel);
  }

  remove(channel: Pumped): void {
    const index = this.#channels.indexOf(channel);
    if (index >= 0) this.#channels.splice(index, 1);
  }

  // A listener that throws ends this round; the hook sees what is left and comes back.
  #deliver(): void {
    const count = this.#channels.length;
    const start = count === 0 ? 0 : this.#next++ % count;
    for (let turn = 0; turn < count; turn++) {
      // The list may shrink meanwhile: a channel that was closed by a listener.
      this.#channels[(start + turn) % count]?.pump();
    }
  }
}

let shared: EventLoop | undefined;

/** The loop of this thread, made at first use. Throws `NATIVE_MISSING` or `NATIVE_REFUSED`. */
export function eventLoop(): EventLoop {
  shared ??= new EventLoop();
  return shared;
}

export type { EventLoop };
