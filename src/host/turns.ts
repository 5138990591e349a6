// Whose task runs in each of several shared hosts: one word for each host, in memory that the hosts,
// their parents and whoever ends hosts see. A host writes its own word, the others read it.

import { callNative, type NativeBoard, requireNative } from '../native.js';

const wordBytes = 4;

export class Turns {
  readonly #words: Int32Array;
  readonly #headerBytes: number;
  readonly #rowBytes: number;

  /** Over a board with a row for each host. */
  constructor(board: NativeBoard) {
    const [headerBytes = 0, rowBytes = 0] = requireNative().boardLayout();
    this.#headerBytes = headerBytes;
    this.#rowBytes = rowBytes;
    this.#words = new Int32Array(callNative(() => board.buffer()));
  }

  /** The place whose task runs in this host; 0: none does. */
  of(host: number): number {
    return Atomics.load(this.#words, this.#at(host));
  }

  set(host: number, place: number): void {
    this.#words[this.#at(host)] = place;
  }

  #at(host: number): number {
    return (this.#headerBytes + host * this.#rowBytes) / wordBytes;
  }
}
