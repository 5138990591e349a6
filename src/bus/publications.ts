// Which publications a successor takes, while they come to it two ways: straight, by the uplink, and handed on by
// its old home. Of one sender both ways keep the order. What is handed on begins first, and what comes
// straight has no end. So the successor takes what is handed on up to the first that came straight, and what
// comes straight from behind the last that was handed on: each once, and none is left out.
// Not here: that both ways overlap, of which the two homes take care (hand-offs.ts).

import type { Origin } from './message.js';

/** Without a secret anybody may make up new ones; a cluster knows as many loops. */
const maxSenders = 4096;

export class Publications {
  readonly #firstStraight = new Map<string, number>();
  readonly #lastHandedOn = new Map<string, number>();

  /** Whether the successor takes one that the uplink brought. */
  takesStraight({ sender, number }: Origin): boolean {
    if (!this.#firstStraight.has(sender)) note(this.#firstStraight, sender, number);
    return number > (this.#lastHandedOn.get(sender) ?? -1);
  }

  /** Whether the successor takes one that the old home has handed on. */
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
