// The version of this package, as its package.json says.

import { createRequire } from 'node:module';

/** Read when asked: most commands never ask. */
export function packageVersion(): string {
  const manifest: unknown = createRequire(import.meta.url)('manycore/package.json');
  const isPackage = typeof manifest === 'object' && manifest !== null && 'version' in manifest;
  return isPackage ? String(manifest.version) : 'unknown';
}
