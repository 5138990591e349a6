// However a program is started, no worker runs it again: the entry that Node resolved, what a runner
// imports, what --import, --require and NODE_OPTIONS load before there is an entry.

import assert from 'node:assert/strict';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { programFolder, runNode } from '../programs.js';

const esm = `import { run } from 'manycore';
console.log('loaded');
export class Job { go() { return 42 } }
const job = new Job();
console.log(await run(() => job.go()), await run((given) => given instanceof Job, job));
`;

/** Threads have the flags of their process, unless they are given others. */
const threads = `import { Pool } from 'manycore';
console.log('loaded');
const pool = new Pool({ worker: 'thread', size: { min: 1, max: 1 } });
export class Job { go() { return 42 } }
const job = new Job();
console.log(await pool.run(() => job.go()), await pool.run((given) => given instanceof Job, job));
`;

const cjs = `const { run } = require('manycore');
console.log('loaded');
class Job { go() { return 42 } }
module.exports = { Job };
const job = new Job();
(async () => {
  console.log(await run(() => job.go()), await run((given) => given instanceof Job, job));
})();
`;

/** A program behind a module of its own: only the runner is the entry. */
const started = `import { start } from './lib/jobs.mjs';
console.log('loaded');
export class Job { go() { return 42 } }
await start(Job);
`;
const jobs = `import { run } from 'manycore';
export async function start(Job) {
  const job = new Job();
  console.log(await run(() => job.go()), await run((given) => given instanceof Job, job));
}
`;

/** Modules that do nothing at the top but keep what such a call gives. */
const keeping = [
  'const answer = run(() => new Job().go()).then(show);',
  'export const answers = Promise.all([run(() => new Job().go())]).then(([answer]) => show(answer));',
  'export default run(() => new Job().go()).then(show);',
  `export const server = createServer().listen(0, async () => {
  show(await run(() => new Job().go()));
  server.close();
});`,
];
const keepers = keeping.map((kept, at) => [
  `esm/keeps-${at}.mjs`,
  `import { createServer } from 'node:http';
import { run } from 'manycore';
export const loaded = console.log('loaded');
const show = (answer) => console.log(answer, createServer instanceof Function);
export class Job { go() { return 42 } }
${kept}
`,
]);

const library = new URL('../../../bundle/index.js', import.meta.url).href;
/** A module that is a URL, which imports by URLs. */
const data = `data:text/javascript,${encodeURIComponent(esm.replace("'manycore'", JSON.stringify(library)))}`;

const files = {
  'node_modules/tool/package.json': '{"type":"module","dependencies":{"manycore":"*"}}',
  'node_modules/tool/cli.js': "import './lib/app.js';",
  'node_modules/tool/lib/app.js': esm,
  'node_modules/starter/package.json': '{"exports":{"./now":{"import":"./index.mjs"}}}',
  'node_modules/starter/index.mjs': "import './lib/app.mjs'; import 'manycore/metrics';",
  'node_modules/starter/lib/app.mjs': `import { run } from 'manycore';
console.log('loaded');
console.log(await run(() => 42), await run(() => true));
`,
  'esm/data-worker.js': `import { Worker } from 'node:worker_threads';
new Worker(new URL(${JSON.stringify(data)}));`,
  'esm/package.json': '{"type":"module","main":"app.js"}',
  'esm/app.js': esm,
  'esm/runner.js': "await import('./app.js');",
  'esm/static-runner.js': "import './app.js';",
  'esm/worker.js': "import { Worker } from 'node:worker_threads'; new Worker('./app.js');",
  'esm/threads.mjs': threads,
  'esm/indirect.mjs': started,
  'esm/lib/jobs.mjs': jobs,
  'esm/indirect-runner.mjs': "await import('./indirect.mjs');",
  'cjs/package.json': '{"main":"lib/app"}',
  'cjs/lib/app.js': cjs,
  'cjs/index.js': cjs,
  'cjs/runner.js': "require('./lib/app.js');",
  'cjs/worker.js': "new (require('node:worker_threads').Worker)('./lib/app.js');",
  ...Object.fromEntries(keepers),
};

type Start = readonly [folder: string, args: readonly string[], stdin?: string, options?: string];

const starts: readonly Start[] = [
  ['esm', ['app.js']],
  ['esm', ['.']],
  ['.', ['esm']],
  ['esm', ['runner.js']],
  ['esm', ['static-runner.js']],
  ['esm', ['indirect-runner.mjs']],
  ['esm', ['worker.js']],
  ['esm', ['link.js']],
  ['esm', ['--import', './app.js', '-e', '0']],
  ['esm', ['--import=./indirect.mjs', '-e', '0']],
  ['esm', ['--input-type=module', '-e', "await import('./app.js')"]],
  ['esm', ['--import', './threads.mjs', '-e', '0']],
  ['esm', ['--input-type=module', '-e', "await import('./threads.mjs')"]],
  ['esm', ['--input-type=module', '-e', esm]],
  ['esm', ['--input-type=module'], esm],
  ['esm', ['data-worker.js']],
  ['esm', ['--import', data, '-e', '0']],
  ['esm', ['--import', './app.js?once', '-e', '0']],
  ['esm', ['-e', '0'], '', '--import ./app.js'],
  ['esm', ['-e', '0'], '', `--import "./indirect\\.mjs"`],
  ['esm', ['-e', '0'], '', '--import starter/now'],
  ['cjs', ['-e', '0'], '', '--no-warnings -r ./lib/app'],
  ['.', ['node_modules/tool/cli.js']],
  ['cjs', ['.']],
  ['cjs', ['lib/app']],
  ['.', ['cjs/lib/app']],
  ['cjs', ['index']],
  ['cjs', ['runner']],
  ['cjs', ['worker.js']],
  ['cjs', ['-r', './lib/app', '-e', '0']],
  ['cjs', ['-e', "require('./lib/app.js')"]],
  ['cjs', [], "require('./lib/app.js')"],
  ...keeping.map((_, at) => ['esm', ['-e', `import('./keeps-${at}.mjs')`]] as const),
];

test('no worker runs the program again, however it was started', async (t) => {
  const root = programFolder(t, files);
  symlinkSync('app.js', join(root, 'esm/link.js'));
  const waiting = starts.entries();
  const runSome = async (): Promise<void> => {
    for (const [, [folder, args, stdin, options]] of waiting) {
      const { lines, stderr } = await runNode(join(root, folder), args, stdin, options);
      const outcome = [...lines, ...(stderr === '' ? [] : [stderr])];
      const start = `cd ${folder}; NODE_OPTIONS='${options}' node ${args.join(' ')}`;
      assert.deepEqual(outcome, ['loaded', '42 true'], start);
    }
  };
  await Promise.all([runSome(), runSome()]);
});

test('`module` and `require.main` have in workers what they have in the program', async (t) => {
  const look = `const look = () => [
  require.main === module, require.main?.filename, require.main?.path, require.main?.paths, require.main?.id,
  typeof require.main?.require, module.id, module.path, module.paths, module.filename, module.loaded,
  Array.isArray(module.children), module.parent?.filename, module.isPreloading, module.constructor.name,
  typeof module.require, Object.keys(module), module.require('./value.cjs'), process.mainModule?.filename,
];`;
  const ask = `const assert = require('node:assert');
const { run, Pool } = require('manycore');
exports.ask = async (look) => {
  const threads = new Pool({ worker: 'thread', size: 1 });
  const [isMain, ...home] = look();
  for (const tried of [run(look), run(async (look) => run(look), look), threads.run(look)]) {
    const [isMainThere, ...there] = await tried;
    assert.deepEqual(there, home);
    console.log(isMain, isMainThere, home[0]?.split('/').at(-1));
  }
  await threads.close();
};`;
  const start = 'setImmediate(async () => { await ask(look); await passTo(ask); });';
  const folder = programFolder(t, {
    'value.cjs': 'module.exports = 1;',
    'lib/value.cjs': 'module.exports = 2;',
    'lib/ask.cjs': ask,
    'lib/look.cjs': `${look} exports.passTo = (take) => take(look);`,
    'app.cjs': `const { ask } = require('./lib/ask.cjs');
const { passTo } = require('./lib/look.cjs');
${look}
${start}`,
    'app.mjs': `import { ask } from './lib/ask.cjs';
import { passTo } from './lib/look.cjs';
passTo(ask);`,
  });
  const outcomes = {
    'app.cjs': [...Array(3).fill('true false app.cjs'), ...Array(3).fill('false false app.cjs')],
    'app.mjs': Array(3).fill('false false undefined'),
  };
  for (const [app, expected] of Object.entries(outcomes)) {
    const { lines, stderr } = await runNode(folder, [app]);
    assert.equal(stderr, '');
    assert.deepEqual(lines, expected);
  }
});

test('workers load what NODE_OPTIONS loads besides the program', async (t) => {
  const folder = programFolder(t, {
    'a "2".mjs': 'process.agents += 1;',
    'agent.mjs': 'process.agents = (process.agents ?? 0) + 1;',
    'app.mjs': `import { Pool } from 'manycore';
for (const worker of ['process', 'thread']) {
  const pool = new Pool({ size: 1, worker, env: { NODE_OPTIONS: process.env.NODE_OPTIONS, mine: '1' } });
  const found = await pool.run(() => [process.agents, process.env.NODE_OPTIONS, process.env.mine]);
  console.log(JSON.stringify(found));
  await pool.close();
}`,
  });
  const options =
    '--no-warnings --import ./agent.mjs --import ./app.mjs --import="./a \\"2\\".mjs"';
  const { lines, stderr } = await runNode(folder, ['-e', '0'], '', options);
  const expected = '--no-warnings --import ./agent.mjs --import="./a \\"2\\".mjs"';
  assert.deepEqual(lines, Array(2).fill(JSON.stringify([2, expected, '1'])));
  assert.equal(stderr, '');
});

for (const worker of ['process', 'thread']) {
  test(`a preload that is not seen to start tasks ends the start of its worker: ${worker}`, async (t) => {
    const text = `const { Pool } = await import('many' + 'core');
console.log('loaded');
await new Pool({ size: 1, worker: '${worker}' }).run(() => 1);`;
    const folder = programFolder(t, { 'hidden.mjs': text });
    const { lines, stderr, exitCode } = await runNode(folder, [
      '--import',
      './hidden.mjs',
      '-e',
      '0',
    ]);
    assert.ok(lines.length < 5, `${lines.length} starts`);
    assert.match(stderr, /a module that --import, -r or NODE_OPTIONS loads starts tasks/);
    assert.notEqual(exitCode, 0);
  });
}

test('a CommonJS module that throws while it loads in a worker is refused, and the worker lives', async (t) => {
  const folder = programFolder(t, {
    'bad.cjs':
      "if (!process.argv[1].endsWith('app.cjs')) throw new Error('not here');\nexports.value = () => 1;",
    'app.cjs': `const { Pool } = require('manycore');
const bad = require('./bad.cjs');
(async () => {
  for (const worker of ['process', 'thread']) {
    const pool = new Pool({ size: 1, worker });
    const pid = await pool.run(() => process.pid);
    await pool.run(() => bad.value()).catch(({ code }) => console.log(code));
    console.log(await pool.run(() => process.pid) === pid);
    await pool.close();
  }
})();`,
  });
  const { lines, stderr } = await runNode(folder, ['app.cjs']);
  assert.deepEqual(lines, ['TRANSFER_IMPORT_FAILED', 'true', 'TRANSFER_IMPORT_FAILED', 'true']);
  assert.equal(stderr, '');
});
