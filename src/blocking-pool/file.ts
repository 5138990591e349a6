// Reads files that may change or end during the read: executables, and the memory of processes.

import { closeSync, openSync, readSync } from 'node:fs';
import type { ReadAt } from './elf.js';

/** Limit of one read, above the size of all names in any build of Node. */
const largestReadBytes = 16 * 1024 * 1024;

/** Calls `use` with an open file and returns its result. Throws the errors of `open`. */
export function withFile<T>(path: string, use: (read: ReadAt) => T): T {
  const fd = openSync(path, 'r');
  try {
    return use((offset, lengthBytes) => readUpTo(fd, offset, lengthBytes));
  } finally {
    closeSync(fd);
  }
}

/** Accepts any offset and length: bytes that cannot be read are left out. */
function readUpTo(fd: number, offset: number, lengthBytes: number): Buffer {
  let filled = 0;
  try {
    const bytes = Buffer.alloc(Math.min(lengthBytes, largestReadBytes));
    while (filled < bytes.length) {
      const count = readSync(fd, bytes, filled, bytes.length - filled, offset + filled);
      if (count === 0) break;
      filled += count;
    }
    return bytes.subarray(0, filled);
  } catch {
    return Buffer.alloc(0);
  }
}
