// Blocked loops lose their turn: the director announces one to all, and each sends to others from then on. The loop
// itself reads the announcement when it is back, and takes it back. Both bear a number, since they come over
// different channels in any order. A queue that is full takes no announcement in, so each ends by itself, too.

import type { Bus, BusLink } from '../bus/index.js';
import { setTimeout } from '../lib/index.js';
import { blockedAddress, parseBlockedNote } from './protocol.js';

export class BlockedPeers {
  readonly #bus: Bus;
  readonly #own: number;
  readonly #links: ReadonlyMap<number, BusLink>;
  /** The last number that each loop has taken back. */
  readonly #backs = new Map<number, number>();
  /** The last number with which each loop was announced. */
  readonly #turns = new Map<number, number>();
  #lastTurn = 0;

  /** `own`: the number of this loop, `links` those to the others. */
  constructor(bus: Bus, own: number, links: ReadonlyMap<number, BusLink>) {
    this.#bus = bus;
    this.#own = own;
    this.#links = links;
    bus.consumer(blockedAddress, ({ body }) => this.#noted(body));
  }

  /** A loop is blocked; called by the director alone. `forMs`: it is back or ended by then. */
  announce(loop: number, forMs: number): void {
    this.#lastTurn += 1;
    const note = { loop, turn: this.#lastTurn, isBack: false, forMs };
    this.#noted(note);
    this.#bus.publish(blockedAddress, note);
  }

  #noted(body: unknown): void {
    const { loop, turn, isBack, forMs } = parseBlockedNote(body);
    if (loop === this.#own) {
      if (!isBack) this.#bus.publish(blockedAddress, { loop, turn, isBack: true, forMs: 0 });
      return;
    }
    const last = this.#backs.get(loop) ?? 0;
    if (isBack) this.#backs.set(loop, Math.max(last, turn));
    if (isBack || turn > last) this.#links.get(loop)?.setBlocked(!isBack);
    if (isBack) return;
    this.#turns.set(loop, turn);
    setTimeout(() => {
      if (this.#turns.get(loop) === turn) this.#links.get(loop)?.setBlocked(false);
    }, forMs).unref();
  }
}
