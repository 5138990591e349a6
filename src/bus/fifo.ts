// What waits in line, however long that is: an array that is shifted costs more the longer it is.

/** From so many items that are gone on, their room is given back. */
const manyGone = 1024;

export class Fifo<Item> {
  #items: (Item | undefined)[] = [];
  #first = 0;

  get length(): number {
    return this.#items.length - this.#first;
  }

  push(item: Item): void {
    this.#items.push(item);
  }

  /** The one that came first; `undefined`: there is none. */
  shift(): Item | undefined {
    if (this.length === 0) return undefined;
    const item = this.#items[this.#first];
    this.#items[this.#first] = undefined; // nobody else keeps it
    this.#first += 1;
    if (this.#first >= manyGone && this.#first * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#first);
      this.#first = 0;
    }
    return item;
  }

  /** All, in order; none is left. */
  takeAll(): Item[] {
    const all: Item[] = [];
    for (let item = this.shift(); item !== undefined; item = this.shift()) all.push(item);
    return all;
  }
}
