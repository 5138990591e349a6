// The variable of a leaf, as one attempt after the other reads and writes it.
// Not here: the words of a leaf (leaf.ts), the row of leaves (leaf-map.ts).

import { type Attempt, gone, type Made, type Write, type WriteOwner } from '../attempt.js';
import { KIND_BYTES } from '../kinds.js';
import { damaged } from '../read-value.js';
import type { TVarName } from '../write-value.js';

/** A block that holds a leaf. */
export interface Block {
  readonly base: number;
  readonly words: number;
}

/** No variable has it. */
const noHeader = -1;

/** The variable of a leaf, as this thread has it. */
export class LeafCell implements WriteOwner, Made {
  readonly at: number;
  header: number;
  #madeBy = 0;
  /** The attempt that has read it, and its leaf then. */
  #readBy = 0;
  #base = 0;
  #writtenBy = 0;
  #write: Write | undefined;

  constructor({ at, header }: TVarName) {
    this.at = at;
    this.header = header;
  }

  /** True: the attempt has written or made it, so that others do not see its leaf as it is here. */
  isOwn(attempt: Attempt): boolean {
    const isWritten = this.#writtenBy === attempt.number && this.#write !== undefined;
    return isWritten || this.#madeBy === attempt.number;
  }

  /** The first word of its leaf. Throws `STM_GONE`. */
  load(attempt: Attempt): number {
    if (this.#writtenBy === attempt.number && this.#write !== undefined) {
      if (this.#write.isFreed) throw gone();
      return this.#write.lo;
    }
    if (this.#readBy !== attempt.number) {
      attempt.read(this.at, this.header);
      if (attempt.kind !== KIND_BYTES) throw damaged('a leaf');
      this.#base = attempt.lo;
      this.#readBy = attempt.number;
    }
    return this.#base;
  }

  /** Makes its read, which has this index, none of the attempt. */
  dropRead(attempt: Attempt, index: number): void {
    attempt.dropRead(index);
    this.#readBy = 0;
  }

  /** Notes that this attempt has made it. */
  begin(attempt: Attempt, base: number): void {
    this.#base = base;
    this.#readBy = attempt.number;
    this.#madeBy = attempt.number;
    attempt.noteMade(this);
  }

  unmake(): void {
    this.header = noHeader;
    this.#readBy = 0;
    this.#madeBy = 0;
    this.#writtenBy = 0;
  }

  set(attempt: Attempt, { base, words }: Block): void {
    const before = this.#writtenBy === attempt.number ? this.#write : undefined;
    const write = this.#writeOf(attempt);
    if (write === before) attempt.retire(write.lo);
    write.kind = KIND_BYTES;
    write.lo = base;
    write.hi = 4 * words;
    write.isPlaced = true;
  }

  end(attempt: Attempt): void {
    this.#writeOf(attempt).isFreed = true;
  }

  #writeOf(attempt: Attempt): Write {
    const before = this.#writtenBy === attempt.number ? this.#write : undefined;
    const write = attempt.writeOf(this, this.at, this.header, before);
    this.#write = write;
    this.#writtenBy = attempt.number;
    return write;
  }

  restore(before: Write | undefined): void {
    this.#write = before;
  }
}
