// Names of files as Vite writes them into the modules that it compiles for Node.
// Not here: its imports (toolchains.ts).

import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bareUrl } from '../modules/resolve-module.js';

/** The function that Vite calls for `import()`. */
export const viteDynamicImport = '__vite_ssr_dynamic_import__';

/**
 * The file that Vite means by `/@fs/file`, or by `/file` below the root of the project, which is a folder
 * above the module at `url`; `undefined` where there is none.
 */
export function fileOfVite(specifier: string, url: string): string | undefined {
  const bare = bareUrl(specifier);
  const path = bare.startsWith('file:') ? fileURLToPath(bare) : bare.replace(/^\/@fs(?=\/)/, '');
  if (!path.startsWith('/')) return undefined;
  if (existsSync(path)) return path;
  if (!url.startsWith('file:')) return undefined;
  for (let folder = dirname(fileURLToPath(url)); ; folder = dirname(folder)) {
    if (existsSync(folder + path)) return folder + path;
    if (folder === dirname(folder)) return undefined;
  }
}
