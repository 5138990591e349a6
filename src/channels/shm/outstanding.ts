// Decides for each received payload whether V8 counts its bytes. V8 collects the whole heap for a few large
// buffers that it counts; for others it never collects, so their number has limits here. A payload that was
// read is young garbage as a rule: from the first limit on, V8 is asked for a collection of young objects.
// Payloads that were kept for a while are old, and only a collection of the whole heap frees them: from the
// second limit on new ones are counted (docs/design/large-results.md).
// Not here: how a buffer is made that V8 does not count (crates/node/src/uncounted.rs).

import { getHeapStatistics } from 'node:v8';
import { isMainThread, markAsUntransferable } from 'node:worker_threads';
import { scavenge } from '../../lib/index.js';
import { requireNative } from '../../native.js';

const mebibyte = 1024 ** 2;

/** Limits for the payloads of one thread. */
export interface OutstandingLimits {
  /** Least growth since the last collection of young objects that leads to the next one. */
  readonly stepBytes: number;
  /** Payloads beyond it are counted by V8. */
  readonly maxBytes: number;
}

/** Limits for a heap of this size; all threads of a program with small heaps have small ones. */
export function limitsFor(heapBytes: number): OutstandingLimits {
  const maxBytes = Math.min(Math.max(heapBytes / 8, 64 * mebibyte), 256 * mebibyte);
  return { stepBytes: maxBytes / 4, maxBytes };
}

/** The payloads that this thread received and that are not collected yet. */
export class Outstanding {
  readonly #limits: OutstandingLimits;
  readonly #readBytes: () => number;
  readonly #collectYoung: () => boolean;
  /** Fewest bytes since the last collection that was asked for. */
  #lowBytes = 0;

  constructor(
    limits: OutstandingLimits,
    readBytes: () => number,
    collectYoung: () => boolean = scavenge,
  ) {
    this.#limits = limits;
    this.#readBytes = readBytes;
    this.#collectYoung = collectYoung;
  }

  /** True: V8 has to count the next payload, of `sizeBytes`. May collect young objects. */
  mustCount(sizeBytes: number): boolean {
    const { stepBytes, maxBytes } = this.#limits;
    let bytes = this.#readBytes();
    this.#lowBytes = Math.min(this.#lowBytes, bytes);
    // Each collection makes what it meets old. With a longer way to the next one, most that is kept for a
    // while meets one alone.
    const growthBytes = Math.max(stepBytes, this.#lowBytes);
    if (bytes > 0 && bytes + sizeBytes - this.#lowBytes > growthBytes) {
      this.#collectYoung();
      // V8 frees buffers in another thread: they may be among these still, and `#lowBytes` falls later.
      bytes = this.#readBytes();
      this.#lowBytes = bytes;
    }
    return bytes + sizeBytes > maxBytes;
  }
}

/** `null`: V8 counts all payloads here. */
let ofThread: Outstanding | null | undefined;

function open(): Outstanding | null {
  const binding = requireNative();
  if (binding.uncountedProblem() !== '') return null;
  const limits = limitsFor(getHeapStatistics().heap_size_limit);
  return new Outstanding(limits, () => binding.outstandingBytes());
}

/** True: V8 has to count the next payload that this thread receives. May collect young objects. */
export function mustCount(sizeBytes: number): boolean {
  if (ofThread === undefined) ofThread = open();
  return ofThread?.mustCount(sizeBytes) ?? true;
}

/**
 * Restricts a payload that V8 does not count to this thread, unless it is the main one. The block is held by
 * the channel of this thread, so it must not outlive the thread in another one.
 */
export function keepInThread(buffer: ArrayBuffer): void {
  if (!isMainThread) markAsUntransferable(buffer);
}
