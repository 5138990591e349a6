// Joins the compiled modules of src/ into few files, dist/bundle/: what the package ships. A host is a
// new Node process, and opening sixty small modules takes a large part of its start (bench/cases/cold.js). The
// front door, the host's entry and the command share chunks, so that a task that imports the package
// meets the copy that its host runs on.
// White space and syntax are minified: V8 keeps the source text of what it runs, in each host
// (bench/cases/memory.js). Names stay, stacks are made readable by the source map, and lines are short:
// Node prints the one from which an uncaught error came.
import { existsSync, readdirSync, rmSync } from 'node:fs';

const outdir = 'dist/bundle';

/** Does nothing without the development packages, or before anything is compiled. */
export async function bundle() {
  if (!existsSync('node_modules/esbuild') || !existsSync('dist/src/index.js')) return;
  const { build } = await import('esbuild');
  const { metafile } = await build({
    entryPoints: {
      index: 'dist/src/index.js',
      entry: 'dist/src/host/entry.js',
      'shared-entry': 'dist/src/host/shared-entry.js',
      main: 'dist/src/cli/main.js',
      serve: 'dist/src/serve/index.js',
      'serve-entry': 'dist/src/serve/serve-entry.js',
      'units-entry': 'dist/src/units/units-entry.js',
      'units-thread': 'dist/src/units/units-thread.js',
      'task-entry': 'dist/src/cluster/task-entry.js',
      'tune-entry': 'dist/src/tune/tune-entry.js',
      'stack-thread': 'dist/src/serve/stack-thread.js',
      static: 'dist/src/serve/static/static.js',
      cgi: 'dist/src/serve/cgi/cgi.js',
      folders: 'dist/src/serve/folders.js',
      metrics: 'dist/src/observe/metrics/metrics.js',
      opentelemetry: 'dist/src/observe/opentelemetry/opentelemetry.js',
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
  const made = { ...metafile.outputs, ...counter.metafile.outputs, ...page.metafile.outputs };
  // Chunks are named by their content: those of an earlier build go, when nobody needs them any more.
  for (const name of readdirSync(outdir)) {
    if (!(`${outdir}/${name}` in made)) rmSync(`${outdir}/${name}`);
  }
}
