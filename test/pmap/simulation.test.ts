// Chunk sizes where they matter: workers that pull chunks of a skewed load, in simulated time.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  chunkBudgetMs,
  chunkItems,
  chunkTargetMs,
  type ItemCost,
  learnCost,
  unknownCost,
} from '../../src/pmap/chunk.js';
import { type Random, random } from '../support/index.js';

/** Cost of a chunk beside its items, in ms. */
const messageMs = 0.02;

interface Part {
  readonly start: number;
  readonly items: number;
}

interface Busy {
  readonly endMs: number;
  readonly end: () => void;
}

/** Workers that pull chunks, each runs one while another waits for it: when all items are through. */
class Simulation {
  endMs = 0;
  chunks = 0;
  readonly #itemsMs: readonly number[];
  readonly #workers: number;
  readonly #isCounted: boolean;
  readonly #busy: Busy[] = [];
  readonly #ready: Part[] = [];
  readonly #returned: Part[] = [];
  #cost: ItemCost = unknownCost;
  #taken = 0;

  /** `isCounted`: it is known from the beginning how many items there are. */
  constructor(itemsMs: readonly number[], workers: number, isCounted = true) {
    this.#itemsMs = itemsMs;
    this.#workers = workers;
    this.#isCounted = isCounted;
  }

  run(): this {
    do {
      this.#fill();
      while (this.#busy.length < this.#workers && this.#ready.length > 0) this.#begin();
      this.#busy.sort((a, b) => b.endMs - a.endMs);
      const first = this.#busy.pop();
      if (first === undefined) throw new Error('nothing runs, and items are left');
      this.endMs = first.endMs;
      first.end();
    } while (this.#busy.length + this.#ready.length + this.#remaining > 0);
    return this;
  }

  get #remaining(): number {
    const returned = this.#returned.reduce((sum, { items }) => sum + items, 0);
    return this.#itemsMs.length - this.#taken + returned;
  }

  #fill(): void {
    while (this.#remaining > 0 && this.#busy.length + this.#ready.length < 2 * this.#workers) {
      const isKnown = this.#isCounted || this.#taken === this.#itemsMs.length;
      const remainingItems = isKnown ? this.#remaining : undefined;
      this.#ready.push(this.#next(this.#size(remainingItems)));
    }
  }

  #size(remainingItems: number | undefined): number {
    const targetMs = chunkTargetMs(this.#workers);
    return chunkItems(this.#cost, { workers: this.#workers, targetMs, remainingItems });
  }

  #next(most: number): Part {
    const { start, items: given } = this.#returned.shift() ?? {
      start: this.#taken,
      items: this.#itemsMs.length - this.#taken,
    };
    const items = Math.min(given, most);
    if (start === this.#taken) this.#taken += items;
    else if (items < given) this.#returned.unshift({ start: start + items, items: given - items });
    return { start, items };
  }

  #begin(): void {
    const { start, items } = this.#ready.shift() ?? { start: 0, items: 0 };
    let ranMs = 0;
    let done = 0;
    while (done < items && (done === 0 || ranMs < chunkBudgetMs(chunkTargetMs(this.#workers)))) {
      ranMs += this.#itemsMs[start + done] ?? 0;
      done += 1;
    }
    const end = (): void => {
      this.chunks += 1;
      this.#cost = learnCost(this.#cost, done, ranMs, 0);
      if (done < items) this.#returned.unshift({ start: start + done, items: items - done });
    };
    this.#busy.push({ endMs: this.endMs + messageMs + ranMs, end });
  }
}

/** Nine of ten items are tiny, one is heavy: some 300 ms for each worker. */
function skewedLoad(dice: Random, workers: number): number[] {
  return Array.from({ length: 1000 * workers }, () =>
    dice.next() < 0.1 ? 1 + 4 * dice.next() : 0.002 + 0.02 * dice.next(),
  );
}

const orders: readonly (readonly [string, (itemsMs: number[]) => number[]])[] = [
  ['in any order', (itemsMs) => itemsMs],
  ['with the heavy items first', (itemsMs) => itemsMs.sort((a, b) => b - a)],
  ['with the heavy items last', (itemsMs) => itemsMs.sort((a, b) => a - b)],
];

function sumOf(itemsMs: readonly number[]): number {
  return itemsMs.reduce((sum, each) => sum + each, 0);
}

for (const workers of [1, 2, 4, 16, 64]) {
  for (const [what, order] of orders) {
    test(`${workers} workers end a skewed load ${what} within 1.1 times the ideal`, (t) => {
      const itemsMs = order(skewedLoad(random(t), workers));
      const idealMs = sumOf(itemsMs) / workers;
      const { endMs, chunks } = new Simulation(itemsMs, workers).run();
      assert.ok(endMs <= 1.1 * idealMs, `${endMs} of ${idealMs} ms, in ${chunks} chunks`);
    });
  }
}

for (const workers of [1, 2, 4, 16]) {
  test(`${workers} workers end a skewed load of unknown length within 1.1 times the ideal`, (t) => {
    const itemsMs = skewedLoad(random(t), workers);
    const idealMs = sumOf(itemsMs) / workers;
    const { endMs, chunks } = new Simulation(itemsMs, workers, false).run();
    assert.ok(endMs <= 1.1 * idealMs, `${endMs} of ${idealMs} ms, in ${chunks} chunks`);
  });
}

test('heavy items that follow each other among tiny ones do not end up with one worker', (t) => {
  const dice = random(t);
  const some = (items: number, ms: number): number[] =>
    Array.from({ length: items }, () => ms * (0.5 + dice.next()));
  const itemsMs = [...some(10_000, 0.05), ...some(64, 5), ...some(600, 0.05)];
  const idealMs = sumOf(itemsMs) / 4;
  const { endMs, chunks } = new Simulation(itemsMs, 4).run();
  assert.ok(endMs <= 1.1 * idealMs, `${endMs} of ${idealMs} ms, in ${chunks} chunks`);
});

test('tiny items of a simulated load travel in crowds', (t) => {
  const dice = random(t);
  const itemsMs = Array.from({ length: 100_000 }, () => 0.0005 + 0.001 * dice.next());
  const { chunks } = new Simulation(itemsMs, 4).run();
  assert.ok(chunks <= 200, `${chunks} chunks`);
});
