// Programs of the bundle and their URLs. Compiled modules start programs by `new URL('…', import.meta.url)`. In
// the bundle, which is one folder, the same programs have other URLs. Paths count from the working directory,
// the repository's root.
import { readFileSync } from 'node:fs';
import { compiledName, urlFrom, withUrls } from './sources.mjs';

export const outdir = 'dist/bundle';

/** Programs of workers, servers and threads, and what they load late, by the name of their file in the bundle. */
export const programs = {
  entry: 'src/worker/inside/entry.ts',
  'shared-entry': 'src/worker/inside/shared-entry.ts',
  main: 'src/cli/main.ts',
  'serve-entry': 'src/serve/process/serve-entry.ts',
  'units-entry': 'src/units/loop/units-entry.ts',
  'units-thread': 'src/units/loop/units-thread.ts',
  'task-entry': 'src/cluster/tasks/task-entry.ts',
  'tune-entry': 'src/tune/load/tune-entry.ts',
  'stack-thread': 'src/serve/process/stack-thread.ts',
  folders: 'src/http-apps/folders.ts',
  'context-sending': 'src/context/sending.ts',
};

/** Loaded by --require into each Node process of a command of `manycore trace`. */
export const requestCounter = 'src/syscalls/count-requests.cts';

/** URLs in the bundle, which is one folder, by paths in dist/src. */
const bundledPlaces = new Map([
  ['dist/src', './'],
  ['dist/bundle', './'],
  [compiledName(requestCounter), './count-requests.cjs'],
  ...Object.entries(programs).map(([name, file]) => [compiledName(file), `./${name}.js`]),
]);

/** esbuild plugin: a bundled module with URLs of the bundle, and then as `edit` returns its text. */
export function bundledSources(edit) {
  return {
    name: 'modules of the bundle',
    setup({ onLoad }) {
      onLoad({ filter: /[\\/]src[\\/].*\.ts$/ }, ({ path }) => {
        const text = withUrls(path, readFileSync(path, 'utf8'), bundledUrl);
        return { contents: edit(text), loader: 'ts' };
      });
    },
  };
}

/**
 * esbuild plugin: `new URL('…', import.meta.url)` with a literal leads from the bundle to the same program,
 * or to the same file outside of dist/. Fails the build for a file of dist/src that the bundle lacks.
 */
export const bundledUrls = bundledSources((text) => text);

function bundledUrl(path) {
  const url = bundledPlaces.get(path.replace(/\/$/, ''));
  if (url !== undefined) return url;
  if (path.startsWith('dist/src/')) throw new Error(`${path} is no program of the bundle`);
  return urlFrom(outdir, path);
}
