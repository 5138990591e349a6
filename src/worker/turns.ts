// Whose task runs in each of several shared workers: one word for each worker, in memory that the workers,
// their parents and whoever ends workers see. A worker writes its own word, the others read it.

import { callNative, type NativeBoard, requireNative } from '../native.js';

const wordBytes = 4;

export class Turns {
  readonly #words: Int32Array;
  readonly #headerBytes: number;
  readonly #rowBytes: number;

  /** Over a board with a row for each worker. */
  constructor(board: NativeBoard) {
    const [headerBytes = 0, rowBytes = 0] = requireNative().boardLayout();
    this.#headerBytes = headerBytes;
    this.#rowBytes = rowBytes;
    this.#words = new Int32Array(callNative(() => board.buffer()));
  }

  /** The place whose task runs in this worker; 0: none does. */
  of(worker: number): number {
    return Atomics.load(this.#words, this.#at(worker));
  }

  set(worker: number, place: number): void {
    this.#words[this.#at(worker)] = place;
  }

  #at(worker: number): number {
    return (this.#headerBytes + worker * this.#rowBytes) / wordBytes;
  }
}
