// Source files, their compiled names, and the URLs by which compiled modules find each other. Shared by the bundle
// of the package and the joined modules of the tests.
import { existsSync, readdirSync } from 'node:fs';
import { join, posix, relative } from 'node:path';

export const sourceFolders = ['src', 'test', 'bench'];

/** Returns the TypeScript files below the compiled folders, with `/` and from the repository's root. */
export function typeScriptFiles() {
  return sourceFolders.filter(existsSync).flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => /(?<!\.d)\.c?ts$/.test(name) && !name.includes('node_modules'))
      .map((name) => join(folder, name)),
  );
}

/** Returns the output file of a source file. */
export function compiledName(source) {
  return join('dist', source.replace(/ts$/, 'js'));
}

/**
 * Returns the text of the module at `path` with another URL in each `new URL('…', import.meta.url)`. `urlOf` gets
 * the path to which the URL leads from the compiled module.
 */
export function withUrls(path, text, urlOf) {
  const folder = posix.dirname(posix.join('dist', relative('.', path).replaceAll('\\', '/')));
  return text.replace(
    /(?<=new URL\()'([^']+)'(?=, import\.meta\.url\))/g,
    (_, url) => `'${urlOf(posix.join(folder, url))}'`,
  );
}

/** Returns the URL from `folder` to `path`; that of a folder keeps its slash. */
export function urlFrom(folder, path) {
  const url = posix.relative(folder, path);
  return `${url.startsWith('.') ? '' : './'}${url}${path.endsWith('/') ? '/' : ''}`;
}
