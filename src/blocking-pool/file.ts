// Bytes of files that change or end while they are read: executables, and the memory of processes.

import { closeSync, openSync, readSync } from 'node:fs';
import type { ReadAt } from './elf.js';

/** Larger than all names of any Node; a file that says more is not believed. */
const largestReadBytes = 16 * 1024 * 1024;

/** What `use` returns; the file is open only as long. Throws what `open` throws. */
export function withFile<T>(path: string, use: (read: ReadAt) => T): T {
  const fd = openSync(path, 'r');
  try {
    return use((offset, lengthBytes) => readUpTo(fd, offset, lengthBytes));
  } finally {
    closeSync(fd);
  }
}

/** Offsets and lengths may be anything: what cannot be read is no byte. */
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
