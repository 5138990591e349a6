// The memory that one value has shown so far: two views of the same bytes must stay two views of the same
// bytes, which only the slow codec ensures. Not here: how a view is written (write.ts).

/** Pieces that are compared one by one. */
const listSize = 32;

/** One per writer; empty between two values. */
export class Pieces {
  readonly #buffers: (ArrayBufferLike | undefined)[] = [];
  /** In bytes, half-open. */
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  #count = 0;
  /** Beyond the list: where the last piece of each buffer ends. */
  #more: Map<ArrayBufferLike, number> | undefined;

  /**
   * Adds the bytes that `view` shows; false when one of them was shown before. Only `Buffer`s may lie
   * on one buffer: they share a pool by nature (`isPooled`). Any other view shows all of its buffer.
   */
  tryAdd(buffer: ArrayBufferLike, view: ArrayBufferView | ArrayBuffer, isPooled: boolean): boolean {
    const start = isPooled && ArrayBuffer.isView(view) ? view.byteOffset : 0;
    const end = isPooled ? start + view.byteLength : Infinity;
    const count = this.#count;
    for (let at = 0; at < count; at += 1) {
      if (this.#buffers[at] !== buffer) continue;
      if (start < (this.#ends[at] ?? 0) && end > (this.#starts[at] ?? 0)) return false;
    }
    if (count < listSize) {
      this.#buffers[count] = buffer;
      this.#starts[count] = start;
      this.#ends[count] = end;
      this.#count = count + 1;
      return true;
    }
    // Pools are handed out from front to back: what lies before the last one may be part of another.
    this.#more ??= new Map();
    if (start < (this.#more.get(buffer) ?? 0)) return false;
    this.#more.set(buffer, end);
    return true;
  }

  clear(): void {
    for (let at = 0; at < this.#count; at += 1) this.#buffers[at] = undefined;
    this.#count = 0;
    this.#more = undefined;
  }
}
