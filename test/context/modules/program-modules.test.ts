// Modules that no worker may load: each text below is a file, and the verdict is that of program.ts.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import * as nodeModule from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isDeclarative, isProgram, noteProgram } from '../../../src/context/modules/program.js';

const folder = mkdtempSync(join(tmpdir(), 'manycore-verdicts-'));
after(() => rmSync(folder, { recursive: true }));

function write(path: string, text: string): string {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return pathToFileURL(file).href;
}

write('package.json', '{"name":"this-app","exports":{"./*":"./*"},"imports":{"#app":"./app.mjs"}}');
mkdirSync(join(folder, 'node_modules'));
symlinkSync(
  fileURLToPath(new URL('../../../..', import.meta.url)),
  join(folder, 'node_modules/manycore'),
);
noteProgram([write('app.mjs', 'export const app = 1;'), write('app.ts', 'export const app = 1;')]);
write('other.mjs', "import './deep/other.mjs';");
write('deep/other.mjs', "import '../other.mjs'; import { app } from '../app.mjs';");
write('node_modules/lib/index.mjs', "import '../../app.mjs';");

/** Statements of modules that lead to the program. */
const leads = [
  "import './app.mjs';",
  "import { app } from './app.mjs';",
  "export { app } from './app.mjs';",
  "export * from './app.mjs';",
  "export * as app from './app.mjs';",
  "import { app } from '#app';",
  "import { app } from 'this-app/app.mjs';",
  "import './deep/other.mjs';",
  "// it's a circle: 'other.mjs\nimport './other.mjs';",
  "const { app } = require('./app.mjs');",
  "(function () { if (1) require('./app.mjs'); })();",
  "const load = () => require('./app.mjs');\nmodule.exports = load();",
  "export const { app } = await import('./app.mjs');",
  "export const later = import('./app.mjs');",
];
const leadsNot = [
  "import './nothing.mjs';",
  "import 'lib/index.mjs';",
  "import './node_modules/lib/index.mjs';",
  "// import './app.mjs';",
  "export const text = './app.mjs';",
  "export const load = () => require('./app.mjs');",
  "export const load = () => import('./app.mjs');",
  'export const nothing = 1;',
];
const types: readonly (readonly [text: string, leads: boolean])[] = [
  ["import { app } from './app.js'; console.log(app);", true],
  ["import { app } from './app'; export { app };", true],
  ["import { App } from './app.js'; export type Made = App;", false],
  ["import type { App } from './app.js'; export type Made = App;", false],
];

/** Statements of a module that starts tasks. */
const starts = [
  'run(() => 1);',
  'await run(() => 1);',
  'void run(() => 1);',
  'export const answer = run(() => 1);',
  'export const answer = await run(() => 1);',
  'export default run(() => 1);',
  'export default await run(() => 1);',
  'export const answers = [run(() => 1)];',
  'export const answers = { first: run(() => 1) };',
  'export let answer; answer = run(() => 1);',
  'export const answer = true && run(() => 1);',
  'export const answer = process.pid ? run(() => 1) : 0;',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a template of the module
  'export const text = `${run(() => 1)}`;',
  'export const { a = run(() => 1) } = {};',
  'if (process.pid) run(() => 1); else 0;',
  'if (!process.pid) { } else { run(() => 1) }',
  'for (const each of [1, 2]) run(() => each);',
  'for (const key in { a: 1 }) run(() => key);',
  'for (let at = 0; at < 2; at += 1) { run(() => 1) }',
  'for (let at = run(() => 1); at; at = undefined) { }',
  'for await (const each of [1, 2]) { console; }',
  'for (const each of run(() => 1)) { }',
  'let left = 2; while (left > 0) { left -= 1; run(() => 1) }',
  'do { run(() => 1) } while (0);',
  'switch (process.platform) { default: run(() => 1) }',
  'switch (run(() => 1)) { }',
  'label: { run(() => 1); break label; }',
  'label: for (;;) { run(() => 1); break label; }',
  'try { run(() => 1) } catch { }',
  'try { } finally { run(() => 1) }',
  'try { throw 1 } catch { run(() => 1) }',
  '{ run(() => 1) }',
  'export class A { static { run(() => 1) } }',
  'export class A { static b = run(() => 1) }',
  'export class A { static [run(() => 1)] = 1 }',
  'export class A { [run(() => 1)]() { } }',
  'export class A extends run(() => 1) { }',
  'class A { b = run(() => 1) } export const a = new A();',
  'class A { constructor() { this.b = run(() => 1) } } export const a = new A();',
  '(() => { run(() => 1) })();',
  '(async () => { run(() => 1) })();',
  'export const answer = (() => run(() => 1))();',
  'export const answer = (function () { return run(() => 1) }).call(0);',
  'export const answer = ((first = run(() => 1)) => first)();',
  'export const answer = (({ a = run(() => 1) }) => a)({});',
  'export const answer = wrap(() => run(() => 1))();',
  'export const answers = [1, 2].map((each) => run(() => each));',
  'export const answers = Promise.all([1, 2].map((each) => run(() => each)));',
  'export const answer = ready.then(() => run(() => 1));',
  'export const answer = new Promise((resolve) => resolve(run(() => 1)));',
  'export const timer = setTimeout(() => run(() => 1));',
  'function main() { return run(() => 1) } export const answer = main();',
  'const main = async () => run(() => 1); export const answer = main();',
  'const main = wrap(() => run(() => 1)); export const answer = main();',
  'export const answers = [1].map(run);',
  'export const answer = run?.(() => 1);',
  'export const answer = start`text`;\nfunction start() { return run(() => 1) }',
  'start`text`;',
  'start?.();',
  'start();',
  'export const answer = go(() => 1);',
  'export const answer = doIt(1); const doIt = task(import.meta.url, "doIt");',
  'export const answer = pool.run(() => 1);',
  'export const answer = pool["run"](() => 1);',
  'export const answer = run.call(undefined, () => 1);',
  'export const answers = pmap([1], (each) => each);',
  'export const answers = pmap.stream([1], (each) => each);',
  'export const server = createServer().listen(0);',
  'process.on("exit", () => {});',
];
const startsNot = [
  'export const app = express();',
  'export const schema = z.object({ name: z.string() });',
  'export const pool = new Pool();',
  'export const hash = (text) => run(() => text);',
  'export async function hash(text) { return await run(() => text) }',
  'export const hash = once(() => run(() => 1));',
  'export const hash = wrap({ go: () => run(() => 1) });',
  'export class A { b = run(() => 1); go() { run(() => 1) } static go() { return run(() => 1) } }',
  'export const object = { get answer() { return run(() => 1) }, go() { return run(() => 1) } };',
  'export const server = createServer((request, response) => run(() => 1));',
  'const table = new Map(); for (const name of ["a"]) table.set(name, 1);',
  'export var Color; (function (Color) { Color[Color["Red"] = 0] = "Red"; })(Color || (Color = {}));',
  '(function (root, factory) { module.exports = factory(); })(this, function () { return {}; });',
  'Object.defineProperty(exports, "__esModule", { value: true });',
  'if (import.meta.main) run(() => 1);',
  'if (require.main === module) { run(() => 1) }',
  'import.meta.main && run(() => 1);',
];

const use = "import { run, run as go, pmap, Pool, task } from 'manycore';";

test('a module that leads to the program is not loaded by a worker, and no other', () => {
  const verdicts = (texts: readonly string[], name: string) =>
    texts.filter((text, at) => isProgram(write(`${name}-${at}.mjs`, text)));
  assert.deepEqual(verdicts(leads, 'leads'), leads);
  assert.deepEqual(verdicts(leadsNot, 'leads-not'), []);
});

test('an import that only types use leads nowhere', {
  skip: !('stripTypeScriptTypes' in nodeModule),
}, () => {
  for (const [at, [text, leadsThere]] of types.entries()) {
    assert.equal(isProgram(write(`types-${at}.ts`, text)), leadsThere, text);
  }
});

test('a module that starts tasks while it loads is not loaded by a worker, and no other', () => {
  const found = (texts: readonly string[], name: string, head = use) =>
    texts.filter((text, at) => isProgram(write(`${name}-${at}.mjs`, `${head}\n${text}`)));
  assert.deepEqual(found(starts, 'starts'), starts);
  assert.deepEqual(found(startsNot, 'starts-not'), []);
  assert.deepEqual(found(starts, 'of-another', "import { run } from './runs.mjs';"), []);
  write('uses.mjs', `${use}\nexport const start = (fn) => run(fn);`);
  const [far = ''] = starts;
  assert.ok(isProgram(write('far.mjs', `import { start as run } from './uses.mjs';\n${far}`)));
  assert.ok(isProgram(write('behind.mjs', "import './far.mjs';")), 'by what it loads');
  assert.ok(!isProgram(write('beside.mjs', "export const load = () => import('./far.mjs');")));
  const metrics = "import { metrics } from 'manycore/metrics';";
  assert.deepEqual(found(starts, 'metrics', metrics), []);
});

test('a `data:` URL that starts tasks is not loaded by a worker, nor what imports it', () => {
  const library = new URL('../../../src/public.js', import.meta.url).href;
  const text = `import { run } from "${library}"; export const answer = await run(() => 1);`;
  const starting = [
    `data:text/javascript,${text.replaceAll(' ', '%20')}`,
    `data:text/javascript;charset=utf-8,${encodeURIComponent(text)}`,
    `data:text/javascript;base64,${btoa(text)}#once`,
  ];
  const others = [
    `data:text/javascript,import { run } from "${library}"; export const start = () => run(() => 1)`,
    'data:text/javascript,export const text = "manycore"; run(text)',
    'data:application/json,{"manycore":1}',
    'data:text/javascript,%',
    'data:',
  ];
  for (const [at, url] of starting.entries()) {
    assert.ok(isProgram(url), url);
    assert.ok(isProgram(write(`data-${at}.mjs`, `import { answer } from '${url}';`)), url);
  }
  assert.deepEqual(others.filter(isProgram), []);
  assert.ok(!isProgram(write('data.mjs', `import { start } from '${others[0]}';`)));
});

test('a module that acts while it loads is not declarative, whatever it uses', () => {
  assert.ok(!isDeclarative(write('acts.mjs', 'for (const each of [1]) start(each);')));
  assert.ok(isDeclarative(write('acts-not.mjs', 'for (const each of [1]) each + 1;')));
});
