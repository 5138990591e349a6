// The repository as files, for tests about the sources themselves.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = new URL('../../../', import.meta.url);

/** The path of a file of the repository, given from its root. */
function repositoryFile(name: string): string {
  return fileURLToPath(new URL(name, root));
}

/** Every TypeScript file of the product, as `src/part/name.ts`, sorted; those of CommonJS are last. */
export function sourceFiles(): string[] {
  return [...filesBelow('src', '.ts'), ...filesBelow('src', '.cts')];
}

/** Files below a folder of the repository with this ending, from its root, sorted; `[]` if none. */
export function filesBelow(folder: string, ending: string): string[] {
  if (!existsSync(repositoryFile(folder))) return [];
  return readdirSync(repositoryFile(folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending) && !name.includes('node_modules'))
    .map((name) => `${folder}/${name}`)
    .sort();
}

/** True: the repository has this file or folder. */
export function repositoryHas(name: string): boolean {
  return existsSync(repositoryFile(name));
}

/** The text of a file of the repository. */
export function readRepositoryFile(name: string): string {
  return readFileSync(repositoryFile(name), 'utf8');
}

/** The sources of these parts. Throws for a part that does not exist: its rules would hold for nothing. */
export function sourceFilesOf(parts: readonly string[]): string[] {
  const files = sourceFiles();
  return parts.flatMap((part) => {
    const found = files.filter((file) => file.startsWith(`src/${part}/`));
    if (found.length === 0) throw new Error(`there is no part src/${part}/`);
    return found;
  });
}
