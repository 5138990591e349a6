// The entries of a watch that its reader has not taken yet. The client reads on while nobody takes entries, and keeps
// all of them. Here a watch ends when they are too many, and the store opens another one from the last entry that was
// taken: the server keeps the last change of each key, so only changes that were replaced meanwhile are left out.

import type { KvEntry, KvWatch } from './kv.js';

/** Limit of unread changes of a watch, in bytes. */
export const maxUnreadBytes = 8 * 2 ** 20;
/** Memory of an entry beside its value, roughly. */
const entryBytes = 1024;

export class ReadAhead implements AsyncIterable<KvEntry> {
  readonly #watch: KvWatch;
  readonly #maxBytes: number;
  /** In the order of their arrival. */
  readonly #unread = new Set<KvEntry>();
  #unreadBytes = 0;
  #isStopped = false;
  #isOver = false;
  #wake = (): void => {};

  /** `maxBytes`: limit of unread entries, after which the watch ends. */
  constructor(watch: KvWatch, maxBytes: number) {
    this.#watch = watch;
    this.#maxBytes = maxBytes;
  }

  /** Ends the watch. Unread entries are dropped: the next watch has them. */
  stop(): void {
    this.#isStopped = true;
    this.#unread.clear();
    this.#watch.stop();
  }

  /** Ends with the watch, after the entries that arrived before; for one reader. */
  async *[Symbol.asyncIterator](): AsyncGenerator<KvEntry, void> {
    const filled = this.#fill();
    filled.catch(() => {}); // thrown below
    for (;;) {
      for (const entry of this.#unread) {
        this.#unread.delete(entry);
        this.#unreadBytes -= sizeOf(entry);
        yield entry;
      }
      if (this.#isOver) break;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    await filled;
  }

  async #fill(): Promise<void> {
    try {
      for await (const entry of this.#watch) {
        if (this.#isStopped) break; // earlier ones were dropped
        this.#unread.add(entry);
        this.#unreadBytes += sizeOf(entry);
        this.#wake();
        if (this.#unreadBytes <= this.#maxBytes) continue;
        this.#watch.stop();
        break;
      }
    } finally {
      this.#isOver = true;
      this.#wake();
    }
  }
}

function sizeOf({ value }: KvEntry): number {
  return value.byteLength + entryBytes;
}
