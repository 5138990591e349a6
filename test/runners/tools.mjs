// The tools in which the closures run: the set of packages of each, the form of its copy of the program, and
// the command that starts it.
// Not here: installing and judging (scripts/test-runners.mjs).

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const fixtures = new URL('./fixtures/', import.meta.url);
const nodeMajor = Number(process.versions.node.split('.')[0]);

const read = (name) => readFileSync(new URL(name, fixtures), 'utf8');

/**
 * Writes the program into `folder`. `isCommonJs`: it becomes CommonJS, which has no import.meta;
 * `expectFrom`: the module that has `expect`, '' for a global; `ext`: of the sources.
 */
function writeProgram(folder, { isCommonJs = false, expectFrom, ext = 'js', type } = {}) {
  mkdirSync(folder, { recursive: true });
  const manifest = { private: true, type: type ?? (isCommonJs ? 'commonjs' : 'module') };
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  for (const name of ['closures', 'own', 'harness']) {
    let text = read(`${name}.js`);
    if (ext === 'ts') text = text.replaceAll(/ \/\*(: \w+)\*\//g, '$1');
    text = text.replaceAll(/'\.\/(\w+)\.js'/g, `'./$1${endingOf({ ext, isCommonJs })}'`);
    if (name === 'closures') {
      if (isCommonJs) text = text.replaceAll('import.meta.url', '__filename');
      if (expectFrom === '') text = text.replace(/^import \{ expect \}.*\n/m, '');
      else if (expectFrom !== undefined)
        text = text.replace(/'\.\/expect[.\w]*'/, `'${expectFrom}'`);
      else text = text.replace(/\{ expect \} from '[^']*'/, "assert from 'node:assert/strict'");
      if (expectFrom === undefined)
        text = text.replace('expect(1 + 1).toBe(2)', 'assert.equal(1 + 1, 2)');
    }
    writeFileSync(join(folder, `${name}.${ext}`), text);
  }
  writeFileSync(join(folder, 'data.json'), read('data.json'));
}

/** Imports in TypeScript that becomes CommonJS have no ending. */
const endingOf = ({ ext = 'js', isCommonJs = false }) =>
  isCommonJs && ext === 'ts' ? '' : `.${ext}`;

const startText = (ending) =>
  `import { runAll } from './harness${ending}';\nrunAll().catch((error) => {\n  console.error(error);\n  process.exitCode = 1;\n});\n`;

const node = (...args) => [process.execPath, ...args];
const bin = (folder, ...parts) => join(folder, '../../node_modules', ...parts);

/** A program that a command runs as it is. */
function script(name, set, command, { ext = 'js', minNode = 20, ...program } = {}) {
  return {
    name,
    set,
    minNode,
    prepare(folder) {
      writeProgram(folder, { ext, ...program });
      writeFileSync(join(folder, `main.${ext}`), startText(endingOf({ ext, ...program })));
      return [command(folder)];
    },
  };
}

/** A program that a build script compiles to `out/`, where node runs `out/main.js`. */
function built(name, build, { isCommonJs = false, main = 'out/main.js', ...program } = {}) {
  return {
    name,
    set: 'builders',
    minNode: 20,
    prepare(folder) {
      writeProgram(folder, { isCommonJs, type: 'module', ...program });
      writeFileSync(join(folder, 'main.js'), startText('.js'));
      mkdirSync(join(folder, 'out'), { recursive: true });
      const type = isCommonJs ? 'commonjs' : 'module';
      writeFileSync(join(folder, 'out/package.json'), JSON.stringify({ type }));
      writeFileSync(join(folder, 'out/data.json'), read('data.json'));
      writeFileSync(join(folder, 'build.mjs'), build);
      return [node('build.mjs'), node(main)];
    },
  };
}

function vitest(set, line, options) {
  return {
    name: `vitest ${line} ${options.join(' ').replaceAll('--', '').replaceAll('.enabled', '')}`,
    set,
    minNode: 20,
    prepare(folder) {
      writeProgram(folder, { expectFrom: 'vitest' });
      writeFileSync(
        join(folder, 'app.test.js'),
        "import { test } from 'vitest';\nimport { runAll } from './harness.js';\ntest('all', runAll, 300_000);\n",
      );
      return [node(bin(folder, 'vitest/vitest.mjs'), 'run', ...options)];
    },
  };
}

/** A test file that is over while its first task begins, and one that runs behind it in the same process. */
const early = `import { run } from 'manycore';
test('is over at once', () => void run(() => 2));
`;
const outlasting =
  "test('outlasts the first', () => new Promise((resolve) => setTimeout(resolve, 3000)));\n";

const sequencer = `const { default: Sequencer } = require('@jest/test-sequencer');
module.exports = class extends Sequencer {
  sort = (tests) => [...tests].sort((a, b) => (a.path < b.path ? -1 : 1));
};
`;

function jest(
  set,
  line,
  name,
  { isCommonJs = true, ext = 'js', config, flags = [], options = [] },
) {
  return {
    name: `jest ${line} ${name}`,
    set,
    minNode: 20,
    // Work of the library after the file of the closures is over shows in the exit code alone.
    mustExitWith0: true,
    prepare(folder) {
      writeProgram(folder, { isCommonJs, ext, expectFrom: '' });
      writeFileSync(
        join(folder, `app.test.${ext}`),
        `import { runAll } from './harness${endingOf({ ext, isCommonJs })}';\ntest('all', runAll, 300_000);\n`,
      );
      writeFileSync(join(folder, `early.test.${ext}`), early);
      writeFileSync(join(folder, `later.test.${ext}`), outlasting);
      writeFileSync(join(folder, 'by-name.cjs'), sequencer);
      const settings = { ...config(folder), testSequencer: './by-name.cjs' };
      writeFileSync(join(folder, 'jest.config.json'), JSON.stringify(settings));
      const cli = bin(folder, 'jest/bin/jest.js');
      const fixed = ['--config=jest.config.json', '--no-cache', '--runInBand'];
      return [node(...flags, cli, ...fixed, ...options)];
    },
  };
}

const babelConfig = () => ({
  transform: {
    '\\.js$': [
      'babel-jest',
      { presets: [['@babel/preset-env', { targets: { node: 'current' } }]] },
    ],
  },
});
const coverage = ['--coverage', '--collectCoverageFrom=*.js'];

function jests(set, line) {
  const flags = ['--experimental-vm-modules', '--no-warnings'];
  const tsOptions = {
    module: 'commonjs',
    target: 'es2022',
    allowJs: true,
    esModuleInterop: true,
    resolveJsonModule: true,
  };
  return [
    jest(set, line, 'ESM', { isCommonJs: false, flags, config: () => ({ transform: {} }) }),
    jest(set, line, 'CommonJS by Babel', { config: babelConfig }),
    jest(set, line, 'CommonJS by ts-jest', {
      ext: 'ts',
      config: () => ({
        transform: { '\\.ts$': ['ts-jest', { diagnostics: false, tsconfig: { ...tsOptions } }] },
      }),
    }),
    jest(set, line, 'coverage by Istanbul', {
      config: babelConfig,
      options: [...coverage, '--coverageProvider=babel'],
    }),
    jest(set, line, 'coverage by V8', {
      config: babelConfig,
      options: [...coverage, '--coverageProvider=v8'],
    }),
  ];
}

function vitests(set, line) {
  const cov = (provider) => ['--coverage.enabled', `--coverage.provider=${provider}`];
  return [
    vitest(set, line, ['--pool=threads']),
    vitest(set, line, ['--pool=forks']),
    vitest(set, line, ['--pool=vmThreads']),
    vitest(set, line, cov('v8')),
    vitest(set, line, cov('istanbul')),
  ];
}

const esbuild = (options) => `import { build } from 'esbuild';
await build({ entryPoints: ['main.js'], outdir: 'out', platform: 'node', logLevel: 'error', ...${JSON.stringify(options)} });`;
const esbuildFiles = (options) =>
  esbuild({ ...options }).replace(
    "['main.js']",
    "['main.js', 'harness.js', 'closures.js', 'own.js']",
  );
const external = { bundle: true, format: 'esm', packages: 'external' };

const webpack = (mode) => `import webpack from 'webpack';
const external = ({ request }, done) =>
  /^(?:manycore|lodash|zod)$/.test(request) ? done(null, 'module-import ' + request) : done();
webpack({
  mode: '${mode}', entry: './main.js', target: 'node20', context: process.cwd(),
  experiments: { outputModule: true }, externals: [external],
  output: { path: process.cwd() + '/out', filename: 'main.js', module: true, chunkFormat: 'module' },
}, (error, stats) => {
  if (error || stats.hasErrors()) { console.error(error ?? stats.toString()); process.exitCode = 1; }
});`;

const rollup = `import { rollup } from 'rollup';
import json from '@rollup/plugin-json';
import terser from '@rollup/plugin-terser';
const bundle = await rollup({ input: 'main.js', external: (id) => /^(?:node:|manycore|lodash|zod)/.test(id), plugins: [json(), terser()] });
await bundle.write({ dir: 'out', format: 'es' });`;

const eachFile = (transform) => `import { readFileSync, writeFileSync } from 'node:fs';
${transform}
for (const name of ['main', 'harness', 'closures', 'own']) {
  const code = await compile(readFileSync(name + '.js', 'utf8'), name + '.js');
  writeFileSync('out/' + name + '.js', code);
}`;

const swc = (target) =>
  eachFile(`import { transform } from '@swc/core';
const compile = async (text, filename) => (await transform(text, { filename, sourceMaps: true,
  jsc: { target: '${target}', parser: { syntax: 'ecmascript' } }, module: { type: 'commonjs' } })).code;`);

const babel = (targets) =>
  eachFile(`import { transformAsync } from '@babel/core';
const compile = async (text, filename) => (await transformAsync(text, { filename, babelrc: false, configFile: false,
  presets: [['@babel/preset-env', { targets: ${JSON.stringify(targets)}, modules: 'commonjs' }]] })).code;`);

const tsc = (target) =>
  eachFile(`import ts from 'typescript';
const compile = (text, fileName) => ts.transpileModule(text, { fileName, compilerOptions: {
  target: '${target}', module: 'commonjs', esModuleInterop: true, allowJs: true } }).outputText;`);

const vite = `import { build } from 'vite';
await build({ logLevel: 'error', build: { ssr: 'main.js', outDir: 'out', emptyOutDir: false } });`;

const test =
  "import { test } from 'node:test';\nimport { runAll } from './harness.js';\ntest('all', runAll);\n";

/** A runner that starts `app.test.js`, or the result of `text` for it. */
function runner(name, set, text, command) {
  return {
    name,
    set,
    minNode: 20,
    prepare(folder) {
      writeProgram(folder);
      writeFileSync(join(folder, 'app.test.js'), text);
      return [command(folder)];
    },
  };
}

export const tools = [
  script('node', 'builders', () => node('main.js')),
  script('strip-types', 'builders', () => node('--no-warnings', 'main.ts'), {
    ext: 'ts',
    minNode: 24,
  }),
  script('tsx', 'builders', (at) => node(bin(at, 'tsx/dist/cli.mjs'), 'main.ts'), { ext: 'ts' }),
  script('tsx, CommonJS', 'builders', (at) => node(bin(at, 'tsx/dist/cli.mjs'), 'main.ts'), {
    ext: 'ts',
    isCommonJs: true,
  }),
  script(
    'ts-node, CommonJS',
    'builders',
    (at) =>
      node(
        bin(at, 'ts-node/dist/bin.js'),
        '--transpile-only',
        '--compilerOptions',
        '{"module":"commonjs","target":"es2022","esModuleInterop":true,"moduleResolution":"node10","resolveJsonModule":true}',
        'main.ts',
      ),
    { ext: 'ts', isCommonJs: true },
  ),
  runner('node:test', 'builders', test, () => node('--test', 'app.test.js')),
  runner(
    'mocha',
    'builders',
    "import { runAll } from './harness.js';\nit('all', runAll).timeout(300_000);\n",
    (at) => node(bin(at, 'mocha/bin/mocha.js'), 'app.test.js'),
  ),
  runner(
    'ava',
    'builders',
    "import test from 'ava';\nimport { runAll } from './harness.js';\ntest('all', async (t) => {\n  t.timeout(300_000);\n  await runAll();\n  t.pass();\n});\n",
    (at) => node(bin(at, 'ava/entrypoints/cli.mjs'), 'app.test.js'),
  ),
  script('c8', 'builders', (at) => node(bin(at, 'c8/bin/c8.js'), process.execPath, 'main.js')),
  script('nyc', 'builders', (at) => node(bin(at, 'nyc/bin/nyc.js'), process.execPath, 'main.js')),
  built('esbuild, files to CommonJS', esbuildFiles({ format: 'cjs' }), { isCommonJs: true }),
  built('esbuild, bundle', esbuild(external)),
  built('esbuild, bundle, minified', esbuild({ ...external, minify: true })),
  built('esbuild, bundle, keepNames', esbuild({ ...external, minify: true, keepNames: true })),
  built(
    'esbuild, bundle, es2017',
    esbuild({
      ...external,
      target: 'es2017',
      supported: { 'import-meta': true, 'dynamic-import': true },
    }),
  ),
  built('esbuild, bundle, CommonJS', esbuild({ ...external, format: 'cjs' }), { isCommonJs: true }),
  built('webpack, production', webpack('production')),
  built('webpack, development', webpack('development')),
  built('rollup and terser', rollup),
  built('vite, SSR', vite),
  built('swc, es2022', swc('es2022'), { isCommonJs: true }),
  built('swc, es5', swc('es5'), { isCommonJs: true }),
  built('Babel, Node 20', babel({ node: '20' }), { isCommonJs: true }),
  built('Babel, ES5 with regenerator', babel({ ie: '11' }), { isCommonJs: true }),
  built('tsc, es2022', tsc('es2022'), { isCommonJs: true }),
  built('tsc, es2017', tsc('es2017'), { isCommonJs: true }),
  ...vitests('vitest4', 4),
  ...vitests('older', 3),
  ...jests('jest30', 30),
  ...jests('older', 29),
].filter(({ minNode }) => nodeMajor >= minNode);
