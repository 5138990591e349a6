// Descriptors that somebody else will own.

import { closeSync } from 'node:fs';
import { callNative, requireNative } from '../native.js';

/** Throws `NATIVE_REFUSED`. Whoever gets it closes it. */
export function copyOf(fd: number): number {
  const descriptors = new (requireNative().NativeDescriptors)();
  return callNative(() => descriptors.release(descriptors.duplicate(fd)));
}

/** All or none, as `copyOf`. */
export function copiesOf(fds: readonly number[]): number[] {
  const copies: number[] = [];
  try {
    for (const fd of fds) copies.push(copyOf(fd));
    return copies;
  } catch (error) {
    for (const fd of copies) closeSync(fd);
    throw error;
  }
}
