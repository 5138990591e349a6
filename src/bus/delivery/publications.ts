// The publications that a successor takes while they come to it two ways: straight by the uplink, and
// forwarded by the source. Both ways keep a sender's order. Forwarding begins earlier, and the straight way
// has no end. So the successor takes forwarded ones up to the first that came straight, and straight ones
// after the last that was forwarded: each once, and none is missing. Not here: that both ways overlap, which
// the two buses see to (hand-offs.ts).

import type { Origin } from './message.js';

/**
 * Senders are remembered up to this number: without a secret anyone can invent new ones. A cluster has as
 * many loops.
 */
const maxSenders = 4096;

export class Publications {
  readonly #firstStraight = new Map<string, number>();
  readonly #lastHandedOn = new Map<string, number>();

  /** True: the successor takes this one, which the uplink brought. */
  takesStraight({ sender, number }: Origin): boolean {
    if (!this.#firstStraight.has(sender)) note(this.#firstStraight, sender, number);
    return number > (this.#lastHandedOn.get(sender) ?? -1);
  }

  /** True: the successor takes this one, which the source has forwarded. */
  takesHandedOn({ sender, number }: Origin): boolean {
    if (number >= (this.#firstStraight.get(sender) ?? Infinity)) return false;
    const last = this.#lastHandedOn.get(sender) ?? -1;
    note(this.#lastHandedOn, sender, Math.max(last, number));
    return true;
  }
}

function note(numbers: Map<string, number>, sender: string, number: number): void {
  const isNew = !numbers.has(sender);
  const [oldest] = isNew && numbers.size >= maxSenders ? numbers.keys() : [];
  if (oldest !== undefined) numbers.delete(oldest);
  numbers.set(sender, number);
}
