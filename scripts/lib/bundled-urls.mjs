// Programs of the bundle and their URLs. Compiled modules start programs by `new URL('…', import.meta.url)`. In
// the bundle, which is one folder, the same programs have other URLs. Paths count from the working directory,
// the repository's root.
import { readFileSync } from 'node:fs';
import { posix, relative } from 'node:path';

export const outdir = 'dist/bundle';

/** Programs of workers, servers and threads, by the name of their file in the bundle. */
export const programs = {
  entry: 'dist/src/worker/inside/entry.js',
  'shared-entry': 'dist/src/worker/inside/shared-entry.js',
  main: 'dist/src/cli/main.js',
  'serve-entry': 'dist/src/serve/process/serve-entry.js',
  'units-entry': 'dist/src/units/loop/units-entry.js',
  'units-thread': 'dist/src/units/loop/units-thread.js',
  'task-entry': 'dist/src/cluster/tasks/task-entry.js',
  'tune-entry': 'dist/src/tune/load/tune-entry.js',
  'stack-thread': 'dist/src/serve/process/stack-thread.js',
  folders: 'dist/src/http-apps/folders.js',
};

/** Loaded by --require into each Node process of a command of `manycore trace`. */
export const requestCounter = 'dist/src/syscalls/count-requests.cjs';

/** URLs in the bundle, which is one folder, by paths in dist/src. */
const bundledPlaces = new Map([
  ['dist/src', './'],
  ['dist/bundle', './'],
  [requestCounter, './count-requests.cjs'],
  ...Object.entries(programs).map(([name, file]) => [file, `./${name}.js`]),
]);

/**
 * esbuild plugin: `new URL('…', import.meta.url)` with a literal leads from the bundle to the same program,
 * or to the same file outside of dist/. Fails the build for a file of dist/src that the bundle lacks.
 */
export const bundledUrls = {
  name: 'URLs of programs',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]dist[\\/]src[\\/].*\.js$/ }, ({ path }) => {
      const folder = posix.dirname(relative('.', path).replaceAll('\\', '/'));
      const contents = readFileSync(path, 'utf8').replace(
        /(?<=new URL\()'([^']+)'(?=, import\.meta\.url\))/g,
        (_, url) => `'${bundledUrl(posix.join(folder, url))}'`,
      );
      return { contents };
    });
  },
};

function bundledUrl(path) {
  const url = bundledPlaces.get(path.replace(/\/$/, ''));
  if (url !== undefined) return url;
  if (path.startsWith('dist/src/')) throw new Error(`${path} is no program of the bundle`);
  return `${posix.relative(outdir, path)}${path.endsWith('/') ? '/' : ''}`;
}
