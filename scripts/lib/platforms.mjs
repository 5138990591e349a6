// The platforms that the package has binaries for. Each is a package of its own, `@manycore/NAME`, so that
// npm installs only the one for the machine. src/lib/node/platform.ts finds the name at run time.
import { closeSync, openSync, readSync } from 'node:fs';

/** Node 20 and later need this version of the GNU C library as well. */
export const glibc = '2.28';

export const platforms = {
  'linux-x64-gnu': { target: 'x86_64-unknown-linux-gnu', os: 'linux', cpu: 'x64', libc: 'glibc' },
  'linux-x64-musl': { target: 'x86_64-unknown-linux-musl', os: 'linux', cpu: 'x64', libc: 'musl' },
  'linux-arm64-gnu': {
    target: 'aarch64-unknown-linux-gnu',
    os: 'linux',
    cpu: 'arm64',
    libc: 'glibc',
  },
  'linux-arm64-musl': {
    target: 'aarch64-unknown-linux-musl',
    os: 'linux',
    cpu: 'arm64',
    libc: 'musl',
  },
};

/** The crates of a package, and its files by their names in cargo's folder. */
export const crates = [
  'manycore-node',
  'manycore-preload',
  'manycore-enter',
  'manycore-guest-clock',
];
export const builtFiles = {
  'manycore.node': 'libmanycore_node.so',
  'manycore-preload.so': 'libmanycore_preload.so',
  'manycore-enter': 'manycore-enter',
  'manycore-guest-clock.so': 'libmanycore_guest_clock.so',
};

/** Returns the name of this machine's platform, also when it is none of the above. */
export function hostPlatform() {
  const { platform, arch, execPath } = process;
  if (platform !== 'linux') return `${platform}-${arch}`;
  const head = Buffer.alloc(4096);
  const file = openSync(execPath, 'r');
  readSync(file, head, 0, head.length, 0);
  closeSync(file);
  return `linux-${arch}-${head.includes('/ld-musl-') ? 'musl' : 'gnu'}`;
}
