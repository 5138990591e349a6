// The version of this package, as its package.json says.

import { createRequire } from 'node:module';

/** Read when asked: most commands never ask. `unknown` in a program that was bundled with it. */
export function packageVersion(): string {
  const manifest = readManifest();
  const isPackage = typeof manifest === 'object' && manifest !== null && 'version' in manifest;
  return isPackage ? String(manifest.version) : 'unknown';
}

function readManifest(): unknown {
  try {
    return createRequire(import.meta.url)('manycore/package.json');
  } catch {
    return undefined;
  }
}
