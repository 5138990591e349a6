// However a program is started, no host runs it again: the entry that Node resolved, what a runner
// imports, what --import and --require load before there is an entry.

import assert from 'node:assert/strict';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { programFolder, runNode } from './programs.js';

const esm = `import { run } from 'manycore';
console.log('loaded');
export class Job { go() { return 42 } }
const job = new Job();
console.log(await run(() => job.go()), await run((given) => given instanceof Job, job));
`;

/** Threads have the flags of their process, unless they are given others. */
const threads = `import { Pool } from 'manycore';
console.log('loaded');
const pool = new Pool({ host: 'thread', size: { min: 1, max: 1 } });
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

const files = {
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

const starts: readonly (readonly [folder: string, args: readonly string[], stdin?: string])[] = [
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

test('no host runs the program again, however it was started', async (t) => {
  const root = programFolder(t, files);
  symlinkSync('app.js', join(root, 'esm/link.js'));
  const waiting = starts.entries();
  const runSome = async (): Promise<void> => {
    for (const [, [folder, args, stdin]] of waiting) {
      const { lines, stderr } = await runNode(join(root, folder), args, stdin);
      const outcome = [...lines, ...(stderr === '' ? [] : [stderr])];
      assert.deepEqual(outcome, ['loaded', '42 true'], `cd ${folder}; node ${args.join(' ')}`);
    }
  };
  await Promise.all([runSome(), runSome()]);
});

test('a CommonJS module that throws while it loads in a host is refused, and the host lives', async (t) => {
  const folder = programFolder(t, {
    'bad.cjs':
      "if (require.main.filename !== __dirname + '/app.cjs') throw new Error('not here');\nexports.value = () => 1;",
    'app.cjs': `const { Pool } = require('manycore');
const bad = require('./bad.cjs');
(async () => {
  for (const host of ['process', 'thread']) {
    const pool = new Pool({ size: 1, host });
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
