// Joins the compiled modules of src/ into few files, dist/bundle/: what the package ships. A worker is a
// new Node process, and opening sixty small modules takes a large part of its start (bench/cases/cold.js). The
// front door, the worker's entry and the command share chunks, so that a task that imports the package
// meets the copy that its worker runs on.
// White space and syntax are minified: V8 keeps the source text of what it runs, in each worker
// (bench/cases/memory.js). Names stay, stacks are made readable by the source map, and lines are short:
// Node prints the one from which an uncaught error came.
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';

export const outdir = 'dist/bundle';

/** The entry points of package.json, by the name of their file in the bundle. */
export const doors = {
  index: 'dist/src/public.js',
  serve: 'dist/src/serve/public.js',
  static: 'dist/src/serve/static/public.js',
  cgi: 'dist/src/serve/cgi/public.js',
  metrics: 'dist/src/observe/metrics/public.js',
  opentelemetry: 'dist/src/observe/opentelemetry/public.js',
};

/** Does nothing without the development packages, or before anything is compiled. */
export async function bundle() {
  if (!existsSync('node_modules/esbuild') || !existsSync('dist/src/public.js')) return;
  const { build } = await import('esbuild');
  const { metafile } = await build({
    entryPoints: {
      ...doors,
      entry: 'dist/src/worker/entry.js',
      'shared-entry': 'dist/src/worker/shared-entry.js',
      main: 'dist/src/cli/main.js',
      'serve-entry': 'dist/src/serve/serve-entry.js',
      'units-entry': 'dist/src/units/units-entry.js',
      'units-thread': 'dist/src/units/units-thread.js',
      'task-entry': 'dist/src/cluster/task-entry.js',
      'tune-entry': 'dist/src/tune/tune-entry.js',
      'stack-thread': 'dist/src/serve/stack-thread.js',
      folders: 'dist/src/serve/folders.js',
    },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    packages: 'external',
    sourcemap: true,
    lineLimit: 160,
    minifyWhitespace: true,
    minifySyntax: true,
    outdir,
    metafile: true,
    logLevel: 'warning',
  });
  // Loaded by --require into whatever Node `manycore trace` finds in a command.
  const counter = await build({
    entryPoints: { 'count-requests': 'dist/src/trace/count-requests.cjs' },
    format: 'cjs',
    platform: 'node',
    target: 'node12',
    minifyWhitespace: true,
    minifySyntax: true,
    outExtension: { '.js': '.cjs' },
    outdir,
    metafile: true,
    logLevel: 'warning',
  });
  // The page of the dashboard, for browsers: two files, and no map, which would be larger than both.
  const page = await build({
    entryPoints: { 'dashboard-page': 'web/main.tsx' },
    tsconfig: 'web/tsconfig.json',
    bundle: true,
    format: 'esm',
    target: ['chrome111', 'firefox113', 'safari16.4'],
    minify: true,
    legalComments: 'eof',
    outdir,
    metafile: true,
    logLevel: 'warning',
  });
  const made = {
    ...metafile.outputs,
    ...(await bundleCommonJs(build)),
    ...counter.metafile.outputs,
    ...page.metafile.outputs,
  };
  // Chunks are named by their content: those of an earlier build go, when nobody needs them any more.
  for (const name of readdirSync(outdir)) {
    const isOurs = !/\.d\.c?ts$/.test(name); // the others are of roll-up-types.mjs
    if (isOurs && !(`${outdir}/${name}` in made)) rmSync(`${outdir}/${name}`);
  }
}

/**
 * The same entry points for require(). Node requires the ES modules, so that a program has one copy of the
 * package whatever way it loads it. Jest cannot: for such loaders there is one CommonJS file with all
 * entry points, which share their state as well. Returns the outputs as a metafile has them.
 */
async function bundleCommonJs(build) {
  const { metafile } = await build({
    stdin: {
      // Functions, so that each entry point is evaluated when it is required.
      contents: Object.entries(doors)
        .map(([name, file]) => `exports.${name} = () => require('./${file}');\n`)
        .join(''),
      resolveDir: '.',
      sourcefile: 'commonjs.cjs',
    },
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20.19',
    packages: 'external',
    define: {
      'import.meta.url': 'moduleUrl',
      'import.meta.main': 'undefined',
      'import.meta.resolve': 'undefined',
    },
    banner: { js: "const moduleUrl=require('node:url').pathToFileURL(__filename).href;" },
    lineLimit: 160,
    minifyWhitespace: true,
    minifySyntax: true,
    outfile: `${outdir}/commonjs.cjs`,
    metafile: true,
    logLevel: 'warning',
  });
  const outputs = { ...metafile.outputs };
  for (const name of Object.keys(doors)) {
    const file = `${outdir}/${name}.cjs`;
    writeFileSync(file, commonJsDoor(name));
    outputs[file] = {};
  }
  return outputs;
}

function commonJsDoor(name) {
  return `'use strict';
// Loads the ES module where require() can, the CommonJS copy where it cannot: Jest 30 says so, Jest 29
// takes it for a script.
try {
  module.exports = require('./${name}.js');
} catch (error) {
  if (error?.code !== 'ERR_REQUIRE_ESM' && error?.name !== 'SyntaxError') throw error;
  module.exports = require('./commonjs.cjs').${name}();
}
`;
}
