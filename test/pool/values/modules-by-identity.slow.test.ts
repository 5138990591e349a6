// A value of a module arrives as that module's, however the callback got it: in an object, as an argument,
// by destructuring, by the helpers of compilers. Each line of a program is one case: its output is compared
// with the expected one.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { programFolder, runNode } from '../programs.js';

/** Classes that no module exports. */
const innerClasses = `class Hidden { constructor(n) { this.n = n; } twice() { return this.n * 2; } }
const Sub = class extends Hidden { twice() { return super.twice() + 1; } };
let Swapped = class { get() { return 1; } };
const make = (n) => new Hidden(n);
const makeSub = (n) => new Sub(n);
const makeSwapped = () => new Swapped();
const swap = () => { Swapped = class {}; };
const isHidden = (x) => x instanceof Hidden;
`;

/**
 * Code of a program with `make`, `made` and `isHidden`: each instance is one of the class of the module.
 */
const asksInner = `(async () => {
  const [h, s, x] = [make(2), made(3), makeSwapped()];
  const H = h.constructor;
  const inside = await run((arg) => [
    isHidden(h), h.constructor === make(1).constructor, isHidden(s), s.twice(), isHidden(arg),
    new H(5).twice(), isHidden(new H(5)), x.get(),
  ], make(4));
  const [back, sub] = await run(() => [make(6), made(7)]);
  return [inside.join(), back.constructor === H, isHidden(back), sub.constructor === s.constructor];
})()`;
const answersInner = ['true,true,true,7,true,10,true,1', true, true, true];

const files = {
  'counter.cjs': 'let n = 0;\nexports.next = () => ++n;\nexports.weak = new WeakMap();\n',
  'getter.cjs': `let n = 0;
function next() { return ++n; }
Object.defineProperty(exports, '__esModule', { value: true });
Object.defineProperty(exports, 'next', { enumerable: true, get: function () { return next; } });
`,
  'whole.cjs': `const seen = new WeakMap();
let calls = 0;
module.exports = function whole(key) { seen.set(key, ++calls); return seen.get(key); };
module.exports.twice = () => ++calls;
`,
  'core.cjs': 'module.exports = { names: [], list() { return this.names; } };\n',
  'both.cjs':
    "const core = require('./core.cjs');\ncore.names.push('js');\nmodule.exports = core;\n",
  'table.json': '{"rows":[1,2,3]}',
  'counter.mjs': `let n = 0;
export const weak = new WeakMap();
export const next = () => ++n;
export default function whole() { return weak.has(whole) || ++n; }
export let live = 1;
`,
  'only-data.mjs': 'export let live = 1;\nexport const table = new WeakMap();\n',
  'inner.mjs': `${innerClasses}export { make, makeSub as made, makeSwapped, swap, isHidden };
`,
  'beside.mjs': `${innerClasses}export { make, isHidden };
`,
  'point.mjs':
    'export class Point { constructor(n) { this.n = n; } twice() { return 2 * this.n; } }\n',
  'inner.cjs': `${innerClasses}module.exports = { data: 1, make, made: makeSub, makeSwapped, swap, isHidden };
`,
  'node_modules/umd/index.js': `!function (root, made) {
  typeof exports === 'object' ? module.exports = made() : root.m = made();
}(this, function () {
  var M = function () { function M(n) { this.n = n } return M.prototype.get = function () { return this.n }, M }(),
    m = function (n) { return new M(n) };
  return m.isM = function (x) { return x instanceof M }, m;
});
`,
  'built.cjs': `${innerClasses}const toExport = { make: () => make, made: () => makeSub, makeSwapped: () => makeSwapped, isHidden: () => isHidden };
for (const name in toExport) Object.defineProperty(exports, name, { get: toExport[name], enumerable: true });
`,
  'acts.mjs': `${innerClasses}console.error('runs');
export { make, isHidden };
`,
  'starts-server.mjs': `import { createServer } from 'node:http';
export const port = 4711;
export function double(x) { return 2 * x + offset; }
let offset = 1;
globalThis.started = (globalThis.started ?? 0) + 1;
createServer(() => {}).on('error', () => {}).unref();
export { offset };
`,
};

/** Each case: what is written around the call, the call, and its result. */
const esm: readonly (readonly [around: string, call: string, result: unknown])[] = [
  ["import * as ns from './counter.mjs'; const o = { ns };", 'run(() => o.ns.next())', 1],
  ["import * as ns from './counter.mjs';", 'run((m) => m.next(), ns)', 1],
  [
    "import * as ns from './only-data.mjs'; const f = ((n) => () => n.table instanceof WeakMap)(ns);",
    'run(f)',
    true,
  ],
  ["const { next } = await import('./counter.mjs');", 'run(() => next())', 1],
  ["const ns = await import('./counter.mjs');", 'run(() => ns.next())', 1],
  ["import { next } from './counter.mjs'; const o = { next };", 'run(() => o.next())', 1],
  ["import { next } from './counter.mjs'; next(); next();", 'run(next)', 1],
  ["import whole from './counter.mjs'; const o = { whole };", 'run(() => o.whole())', 1],
  ["import table from './table.json' with { type: 'json' };", 'run(() => table.rows.length)', 3],
  [
    "import { double } from './starts-server.mjs'; const o = { double };",
    "run(() => [o.double(2), new Function('return typeof started')()])",
    [5, 'undefined'],
  ],
  ["import { make, made, makeSwapped, isHidden } from './inner.mjs';", asksInner, answersInner],
  [
    "import lib from './inner.cjs'; const { make, made, makeSwapped, isHidden } = lib;",
    asksInner,
    answersInner,
  ],
  // It would be run again for its class.
  [
    "import { make } from './acts.mjs'; const h = make(2);",
    'run(() => [h.twice(), h.constructor.name])',
    [4, 'Hidden'],
  ],
  ["const { taskSignal } = await import('manycore');", 'run(() => typeof taskSignal())', 'object'],
  [
    "import { createRequire } from 'node:module'; const { taskSignal } = createRequire(import.meta.url)('manycore');",
    'run(() => typeof taskSignal())',
    'object',
  ],
  ["import whole from './whole.cjs'; const o = { whole };", 'run(() => o.whole({}))', 1],
  [
    "import fs from 'node:fs'; const o = { fs };",
    'run(() => typeof o.fs.readFileSync)',
    'function',
  ],
  [
    '',
    "run(() => [import.meta.resolve('fs'), import.meta.resolve('node:fs')])",
    ['node:fs', 'node:fs'],
  ],
  // The top of classic scripts is a scope around all others: its variables are none of the module.
  [
    "import vm from 'node:vm'; vm.runInThisContext('let make = () => 0;'); const { make } = await import('./beside.mjs');",
    "run(async (arg) => (await import('./beside.mjs')).isHidden(arg), make(1))",
    true,
  ],
  [
    "import vm from 'node:vm'; import { Point } from './point.mjs'; const p = new Point(2); vm.runInThisContext('let known = new Map(); (p) => known.set(p, 1)')(p);",
    'run(() => [p.twice(), p instanceof Point])',
    [4, true],
  ],
];

const cjs: typeof esm = [
  ["const lib = require('./counter.cjs'); const o = { lib };", 'run(() => o.lib.next())', 1],
  ["const lib = require('./counter.cjs');", 'run((l) => l.next(), lib)', 1],
  ["const { next } = require('./counter.cjs'); next(); next();", 'run(() => next())', 1],
  ["const { next } = require('./getter.cjs');", 'run(() => next())', 1],
  ["const whole = require('./whole.cjs');", 'run(() => whole({}))', 1],
  ["const whole = require('./whole.cjs');", 'run(whole, {})', 1],
  [
    "const { twice } = require('./whole.cjs'); const whole = require('./whole.cjs');",
    'run(() => [twice(), whole({})])',
    [1, 2],
  ],
  [
    "const __importDefault = (m) => (m && m.__esModule) ? m : { default: m }; const lib_1 = __importDefault(require('./counter.cjs'));",
    'run(() => (0, lib_1.default.next)())',
    1,
  ],
  [
    `const __importStar = (mod) => { const result = {}; for (const k of Object.keys(mod)) Object.defineProperty(result, k, { enumerable: true, get: function () { return mod[k]; } }); result.default = mod; return result; };
     const lib = __importStar(require('./counter.cjs'));`,
    'run(() => [lib.next(), lib.default.next()])',
    [1, 2],
  ],
  [
    "const { make, made, makeSwapped, isHidden } = require('./inner.cjs');",
    asksInner,
    answersInner,
  ],
  [
    "const { make, made, makeSwapped, isHidden } = require('./built.cjs');",
    asksInner,
    answersInner,
  ],
  [
    "const m = require('umd'); const one = m(3);",
    'run((two) => [m.isM(one), m.isM(two), one.get() + two.get()], m(4))',
    [true, true, 7],
  ],
  ["const both = require('./both.cjs');", 'run(() => both.list())', ['js']],
  ["const { taskSignal } = require('manycore');", 'run(() => typeof taskSignal())', 'object'],
  ["const { perWorker } = require('manycore');", 'run(() => perWorker(() => 7)())', 7],
  ["const { shared } = require('manycore');", 'run(() => shared(8).byteLength)', 8],
  [
    "const mc = require('manycore'); const o = { mc };",
    'run(() => typeof o.mc.taskSignal())',
    'object',
  ],
];

for (const [kind, cases, load] of [
  ['mjs', esm, "import { Pool } from 'manycore';"],
  ['cjs', cjs, "const { Pool } = require('manycore');"],
] as const) {
  test(`${kind}: what belongs to a module arrives as that module`, async (t) => {
    const programs = Object.fromEntries(
      cases.map(([around, call], at) => [
        `case-${at}.${kind}`,
        `${around}
module_exports = async (run) => await ${call};`.replace(
          'module_exports =',
          kind === 'mjs' ? 'export default' : 'module.exports =',
        ),
      ]),
    );
    const main = `${load}
const start = async () => {
  for (let at = 0; at < ${cases.length}; at += 1) {
    // A worker of its own: modules have their state in each.
    const pool = new Pool({ size: 1 });
    try {
      const { default: callIt } = await import(\`./case-\${at}.${kind}\`);
      console.log(JSON.stringify(await callIt((fn, ...args) => pool.run(fn, ...args))));
    } catch (error) {
      console.log(String(error).replaceAll('\\n', ' '));
    }
    await pool.close();
  }
};
${kind === 'mjs' ? 'await start();' : 'start();'}`;
    const folder = programFolder(t, { ...files, ...programs, [`main.${kind}`]: main });
    const { lines, stderr } = await runNode(folder, [`main.${kind}`]);
    for (const [at, [around, call, result]] of cases.entries()) {
      assert.equal(lines[at], JSON.stringify(result), `${around} ${call}`);
    }
    assert.equal(stderr, kind === 'mjs' ? 'runs\n' : '');
  });
}
