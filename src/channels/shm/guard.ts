// The check of what a peer that is not trusted publishes in the segment. An honest peer writes its own words alone, and
// rings once for each thing that it publishes. One that does otherwise could keep this loop awake for nothing.
// Not here: frames and their sizes (ring-reader.ts, for every peer), values (context/decode/data-only.ts).

import { endWordAt, type SideWords, sideState } from './layout.js';

/** The changes of a channel's state, from absent to gone. Each may ring, and may be read here before the loop sees it. */
const stateChanges = 3;

export class Guard {
  readonly #words: Int32Array;
  readonly #endWords: Int32Array;
  readonly #at: SideWords;
  #seenNews = 0;
  #seenRings = 0;
  #seenFrames = 0;
  #seenRoomEvents = 0;
  #seenState: number = sideState.absent;
  #wasBellGone = false;
  #unexplained = 0;

  constructor(words: Int32Array, endWords: Int32Array, side: SideWords) {
    this.#words = words;
    this.#endWords = endWords;
    this.#at = side;
  }

  /** True: the peer has closed its end of the bell. */
  get isBellGone(): boolean {
    return this.#endWords[endWordAt.isBellGone] !== 0;
  }

  /**
   * Returns what the peer has forged, if anything. To be called when its ring is empty. `frames`: all of the peer so
   * far; `roomEvents`: all requests of this side for room, and all that it has got.
   */
  findForgery(frames: number, roomEvents: number): string | undefined {
    const state = Atomics.load(this.#words, this.#at.peerState);
    const rings = this.#endWords[endWordAt.rings] ?? 0;
    const news = this.#endWords[endWordAt.news] ?? 0;
    if (state < this.#seenState || state > sideState.gone) return `the state ${state}`;
    if (rings > frames + roomEvents + stateChanges) return `the number of ${rings} rings`;
    const isExplained =
      frames !== this.#seenFrames ||
      roomEvents !== this.#seenRoomEvents ||
      state !== this.#seenState ||
      rings !== this.#seenRings ||
      this.isBellGone !== this.#wasBellGone;
    if (news !== this.#seenNews && !isExplained) this.#unexplained += 1;
    if (this.#unexplained > stateChanges) return 'a change that is none';
    this.#seenNews = news;
    this.#seenFrames = frames;
    this.#seenRoomEvents = roomEvents;
    this.#seenState = state;
    this.#seenRings = rings;
    this.#wasBellGone = this.isBellGone;
    return undefined;
  }
}
