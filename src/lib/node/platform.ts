// The platform of this Node, by the name that its native binary has: `linux-x64-gnu`, `linux-arm64-musl`,
// `darwin-arm64`. The C library is that of the executable, as its dynamic linker names it: elf(5), PT_INTERP.

import { closeSync, openSync, readSync } from 'node:fs';

/** Platforms for which npm has a binary, as in scripts/lib/platforms.mjs. */
export const builtPlatforms: readonly string[] = Object.freeze([
  'linux-x64-gnu',
  'linux-x64-musl',
  'linux-arm64-gnu',
  'linux-arm64-musl',
]);

/** The interpreter's path is near the head of an executable. */
const headBytes = 4096;

export function platformName(): string {
  const { platform, arch } = process;
  return platform === 'linux' ? `linux-${arch}-${libcOf(process.execPath)}` : `${platform}-${arch}`;
}

/** Returns `gnu`, the usual one, when the executable cannot be read. */
export function libcOf(executable: string): 'gnu' | 'musl' {
  const head = Buffer.alloc(headBytes);
  try {
    const file = openSync(executable, 'r');
    try {
      readSync(file, head, 0, headBytes, 0);
    } finally {
      closeSync(file);
    }
  } catch {
    return 'gnu';
  }
  return head.includes('/ld-musl-') ? 'musl' : 'gnu';
}
