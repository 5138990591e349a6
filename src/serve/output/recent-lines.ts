// The last lines of a server's output, and those who follow it: `manycore logs`.

import type { OutputLine } from './lines.js';

const maxLines = 1000;
const maxLength = 1024 * 1024;

export class RecentLines {
  readonly #lines: OutputLine[] = [];
  #length = 0;
  readonly #followers = new Set<(line: OutputLine) => void>();

  add(line: OutputLine): void {
    this.#lines.push(line);
    this.#length += line.text.length;
    while (this.#lines.length > maxLines || (this.#length > maxLength && this.#lines.length > 1)) {
      this.#length -= this.#lines.shift()?.text.length ?? 0;
    }
    for (const follower of this.#followers) follower(line);
  }

  last(count: number): readonly OutputLine[] {
    return count <= 0 ? [] : this.#lines.slice(-count);
  }

  /** Calls `follower` with each line to come, until the returned function is called. */
  follow(follower: (line: OutputLine) => void): () => void {
    this.#followers.add(follower);
    return () => this.#followers.delete(follower);
  }
}
