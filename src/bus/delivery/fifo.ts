// A queue of any length: `shift` on a plain array costs more the longer the array is.

/** The array is compacted once so many items were removed. */
const manyGone = 1024;

export class Fifo<Item> {
  /** The number of items. Not to be set. */
  length = 0;
  #items: (Item | undefined)[] = [];
  #first = 0;

  push(item: Item): void {
    this.#items.push(item);
    this.length += 1;
  }

  /** Removes and returns the oldest item; `undefined`: the queue is empty. */
  shift(): Item | undefined {
    if (this.length === 0) return undefined;
    const item = this.#items[this.#first];
    this.#items[this.#first] = undefined; // lets it be collected
    this.#first += 1;
    this.length -= 1;
    if (this.#first >= manyGone && this.#first * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#first);
      this.#first = 0;
    }
    return item;
  }

  /** Removes and returns all items, in order. */
  takeAll(): Item[] {
    const all: Item[] = [];
    for (let item = this.shift(); item !== undefined; item = this.shift()) all.push(item);
    return all;
  }
}
