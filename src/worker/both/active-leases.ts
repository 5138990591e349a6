// The active lease of each shared worker, the one whose task runs: one word for each worker, in memory that
// workers, their parents and the supervisor share. A worker writes its own word, the others read it.

import { callNative, type NativeBoard, requireNative } from '../../native.js';

const wordBytes = 4;

export class ActiveLeases {
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

  /** The lease whose task runs in this worker; 0: the worker is idle. */
  of(worker: number): number {
    return Atomics.load(this.#words, this.#at(worker));
  }

  set(worker: number, lease: number): void {
    this.#words[this.#at(worker)] = lease;
  }

  #at(worker: number): number {
    return (this.#headerBytes + worker * this.#rowBytes) / wordBytes;
  }
}
