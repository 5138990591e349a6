// The folders that a function needs in a sandbox, where its modules are imported again.

import { createRequire, isBuiltin } from 'node:module';
import { dirname, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type AnyFunction, moduleDefinition } from '../../context/index.js';
import { notFunction } from '../../lib/index.js';
import { parentExporter } from '../parent/exporter.js';
import { isWithin, packageFilesAbove } from './files.js';

/**
 * Returns folders for the option `read` of a sandbox in which `fn` is to run: of each module that it imports the folder
 * with the `package.json` of its package, or the `node_modules` in which that is. There may be more in such a folder
 * than a stranger is to read: name a smaller one then. Throws `TASK_NOT_FUNCTION`, `TRANSFER_…`.
 */
export function partitionNeeds(fn: AnyFunction): string[] {
  if (typeof fn !== 'function') throw notFunction('fn', fn);
  const exporter = parentExporter();
  const { definitions } = exporter.exportFunction(fn);
  const files = definitions.flatMap((id) => {
    const module = moduleDefinition(exporter, id);
    return module === undefined || isBuiltin(module.specifier) ? [] : [fileOf(module)];
  });
  const folders = [...new Set(files.map(folderOf))].sort();
  return folders.filter(
    (folder, at) => !folders.slice(0, at).some((above) => isWithin(folder, above)),
  );
}

function fileOf({ specifier, parent }: { specifier: string; parent: string }): string {
  if (specifier.startsWith('file:')) return fileURLToPath(specifier);
  return createRequire(parent === '' ? import.meta.url : parent).resolve(specifier);
}

function folderOf(file: string): string {
  const inside = file.lastIndexOf(`${sep}node_modules${sep}`);
  if (inside >= 0) return file.slice(0, inside + `${sep}node_modules`.length);
  const nearest = dirname(file);
  const [own] = packageFilesAbove(nearest);
  return own === undefined ? nearest : dirname(own);
}
