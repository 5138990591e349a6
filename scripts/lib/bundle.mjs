// Joins the modules of src/ into few files, dist/bundle/, which the package ships. A worker is a new
// Node process, and opening sixty small modules takes a large part of its start (bench/cases/cold.js). The
// main entry point, the worker's entry and the command share chunks, so that a task that imports the package
// gets the copy that its worker runs on.
// White space and syntax are minified: V8 keeps the source text of all loaded code, in each worker
// (bench/cases/memory.js). Names stay and lines are short, so that stacks can be read: Node prints the line
// from which an uncaught error came. There are no source maps: they would lead to files that are not packed.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { withoutBuiltinImports } from './builtin-imports.mjs';
import { bundledSources, bundledUrls, outdir, programs, requestCounter } from './bundled-urls.mjs';

/** The entry points of package.json, by the name of their file in the bundle. */
export const doors = {
  index: 'src/public.ts',
  serve: 'src/serve/public.ts',
  static: 'src/http-apps/static/public.ts',
  cgi: 'src/http-apps/cgi/public.ts',
  metrics: 'src/observe/metrics/public.ts',
  opentelemetry: 'src/observe/opentelemetry/public.ts',
  stm: 'src/stm/public.ts',
};

/**
 * Packages whose code is in the bundle, one CommonJS file for each: users of a pool install none of them.
 * `named`: their exports by name; else the default one is all.
 */
const packedPackages = {
  'ansi-escapes': 'named',
  commander: 'named',
  croner: 'named',
  'mime-types': 'default',
  'prom-client': 'named',
  send: 'default',
  'string-width': 'default',
};

/** Licences of the packages in the bundle. */
const licencesFile = 'third-party-licences.txt';

/** esbuild plugin: imports of packed packages resolve to their files. `own`: the package being packed. */
const toPackedFiles = (own) => ({
  name: 'packed packages',
  setup({ onResolve }) {
    const names = Object.keys(packedPackages).filter((name) => name !== own);
    onResolve({ filter: new RegExp(`^(${names.join('|')})$`) }, ({ path }) => {
      return { path: `./package-${path}.cjs`, external: true };
    });
  },
});

/** Does nothing without the development packages. */
export async function bundle() {
  if (!existsSync('node_modules/esbuild')) return;
  const { build } = await import('esbuild');
  const { metafile } = await build({
    entryPoints: {
      ...doors,
      ...programs,
    },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    packages: 'external',
    plugins: [toPackedFiles(), bundledSources(withoutBuiltinImports)],
    lineLimit: 160,
    minifyWhitespace: true,
    minifySyntax: true,
    outdir,
    metafile: true,
    logLevel: 'warning',
  });
  const counter = await build({
    entryPoints: { 'count-requests': requestCounter },
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
  const packed = await bundlePackages(build);
  const inputs = [page, ...packed].flatMap(({ metafile }) => Object.keys(metafile.inputs));
  writeFileSync(`${outdir}/${licencesFile}`, licencesOf(inputs));
  const made = {
    ...metafile.outputs,
    ...(await bundleCommonJs(build)),
    ...Object.assign({}, ...packed.map(({ metafile }) => metafile.outputs)),
    [`${outdir}/${licencesFile}`]: {},
    ...counter.metafile.outputs,
    ...page.metafile.outputs,
  };
  // Chunks are named by their content: removes those of earlier builds.
  for (const name of readdirSync(outdir)) {
    const isOurs = !/\.d\.c?ts$/.test(name); // roll-up-types.mjs makes the others
    if (isOurs && !(`${outdir}/${name}` in made)) rmSync(`${outdir}/${name}`);
  }
}

/** Resolves to the results of esbuild. */
async function bundlePackages(build) {
  return await Promise.all(
    Object.entries(packedPackages).map(async ([name, kind]) => {
      const names = Object.keys(await import(name)).filter((each) =>
        /^(?!default$)\w+$/.test(each),
      );
      const contents =
        kind === 'named'
          ? `export { ${names.join(', ')} } from '${name}';`
          : `const all = require('${name}'); module.exports = all.default ?? all;`;
      return await build({
        stdin: { contents, resolveDir: '.', sourcefile: `package-${name}.js` },
        bundle: true,
        format: 'cjs',
        platform: 'node',
        target: 'node20.19',
        plugins: [toPackedFiles(name)],
        lineLimit: 160,
        minifyWhitespace: true,
        minifySyntax: true,
        outfile: `${outdir}/package-${name}.cjs`,
        metafile: true,
        logLevel: 'warning',
      });
    }),
  );
}

/**
 * Returns names, versions and licence texts of the packages of the files `inputs`. Throws if one has no
 * licence.
 */
function licencesOf(inputs) {
  const folders = inputs.flatMap((path) => {
    const [folder] = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? [];
    return folder === undefined ? [] : [folder];
  });
  const texts = [...new Set(folders)].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
    const file = readdirSync(folder).find((each) => /^(licen[cs]e|copying)/i.test(each));
    if (license === undefined) throw new Error(`${folder} names no licence`);
    const text = file === undefined ? '' : readFileSync(`${folder}/${file}`, 'utf8').trim();
    return `${name} ${version} (${license})\n\n${text}`;
  });
  return `Code of these packages is in the files beside this one.\n\n${texts.join('\n\n---\n\n')}\n`;
}

/**
 * Bundles the same entry points for require(). Node requires the ES modules, so that a program has one copy
 * of the package for both ways of loading. Jest cannot: such loaders get one CommonJS file with all entry
 * points, which also share their state. Returns the outputs in the form of a metafile.
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
    plugins: [toPackedFiles(), bundledUrls],
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
// Loads the ES module if require() can, else the CommonJS copy: Jest 30 throws ERR_REQUIRE_ESM, Jest 29
// parses the module as a script and throws a SyntaxError.
try {
  module.exports = require('./${name}.js');
} catch (error) {
  if (error?.code !== 'ERR_REQUIRE_ESM' && error?.name !== 'SyntaxError') throw error;
  module.exports = require('./commonjs.cjs').${name}();
}
`;
}
