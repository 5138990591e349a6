// Duplicates of descriptors, for an owner other than the caller.

import { closeSync } from 'node:fs';
import { callNative, requireNative } from '../../native.js';

/** Duplicates a descriptor; the receiver closes the duplicate. Throws `NATIVE_REFUSED`. */
export function dupFd(fd: number): number {
  const descriptors = new (requireNative().NativeDescriptors)();
  return callNative(() => descriptors.release(descriptors.duplicate(fd)));
}

/** Replaces a descriptor by a duplicate that child programs do not inherit. Throws `NATIVE_REFUSED`. */
export function privateFd(fd: number): number {
  try {
    return dupFd(fd);
  } finally {
    closeSync(fd);
  }
}

/** Duplicates all or none, as `dupFd`. */
export function dupFds(fds: readonly number[]): number[] {
  const copies: number[] = [];
  try {
    for (const fd of fds) copies.push(dupFd(fd));
    return copies;
  } catch (error) {
    closeFds(copies);
    throw error;
  }
}

export function closeFds(fds: readonly number[]): void {
  for (const fd of fds) closeSync(fd);
}
