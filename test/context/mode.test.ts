// Strict or sloppy: a function keeps the mode that it was written in, by whichever rule.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import vm from 'node:vm';
import fc from 'fast-check';
import { random } from '../support/index.js';
import { Peer } from './harness.js';

const peer = new Peer();
after(() => peer.close());

type Probe = () => unknown;

/** Evaluates `text` as a script without a file, as `eval` outside of any function does. */
function evaluate(text: string): Probe {
  const value: unknown = vm.runInThisContext(text);
  if (typeof value !== 'function') throw new TypeError('the text is not a function');
  return () => Reflect.apply(value, undefined, []);
}

async function same(probe: Probe): Promise<void> {
  assert.deepEqual(await peer.run(probe), probe());
}

/** Code whose result depends on its mode, in each kind of function. */
const probes: readonly string[] = [
  'function () { return this === undefined; }',
  'function named() { return typeof this; }',
  '() => (function () { return this === undefined; })()',
  "() => { const o = Object.freeze({ a: 1 }); try { o.a = 2; return 'silent'; } catch { return 'throws'; } }",
  '(() => { const o = { m() { return this === undefined; } }; return o.m; })()',
  '(() => { const o = { get g() { return this === undefined; } }; return Object.getOwnPropertyDescriptor(o, "g").get; })()',
  '(class { static m() { return this === undefined; } }).m',
  'function (a = 1) { arguments[0] = 5; return [a, arguments.length]; }',
  'function (a) { a = 7; return arguments[0]; }',
  '() => { function inner() { return this === undefined; } return inner(); }',
];

test('a function whose enclosing function has a directive is strict', async () => {
  await same(evaluate(`(function () { 'use strict'; return ${probes[0]} })()`));
});

test('a function of new Function is sloppy', async () => {
  const made: unknown = new Function('return this === undefined');
  assert.ok(typeof made === 'function');
  await same(() => Reflect.apply(made, undefined, []));
});

test('a sloppy function may use with and octal numbers', async () => {
  await same(evaluate('(function () { with ({ a: 010 }) { return a; } })'));
});

test('a text that is strict here and sloppy there keeps both modes', async () => {
  for (const text of probes) {
    for (let round = 0; round < 3; round += 1) {
      await same(evaluate(`(${text})`));
      await same(evaluate(`'use strict'; (${text})`));
    }
  }
});

test('many block comments before a directive do not hold up the program', async () => {
  const comments = '/*---*/\n\n/** d */\nvar a;\n'.repeat(60);
  await same(evaluate(`/** x */\n;(function(){${comments} return () => typeof a })()`));
});

test('a function keeps its mode in random directives, functions and classes', async (t) => {
  const { seed } = random(t);
  const wraps = fc.array(
    fc.constantFrom(
      (text: string) => `(function () { return ${text} })()`,
      (text: string) => `(function () { 'use strict'; return ${text} })()`,
      (text: string) => `(function () { /* 'use strict' */ return ${text} })()`,
      (text: string) => `(function () { ('use strict'); return ${text} })()`,
      (text: string) => `(function () { 'a'; "use strict"; return ${text} })()`,
      (text: string) => `(() => ${text})()`,
      (text: string) => `(class { static make() { return ${text} } }).make()`,
      (text: string) => `({ make() { return ${text} } }).make()`,
      (text: string) => `new Function(${JSON.stringify(`return ${text}`)})()`,
      (text: string) => `(0, eval)(${JSON.stringify(`(${text})`)})`,
    ),
    { maxLength: 3 },
  );
  const heads = fc.constantFrom('', "'use strict';", '/* x */ "use strict";', "'other';", '// y\n');
  const programs = fc.tuple(heads, wraps, fc.constantFrom(...probes));
  const numRuns = Number(process.env['MANYCORE_RUNS'] ?? 40);
  await fc.assert(
    fc.asyncProperty(programs, async ([head, around, probe]) => {
      await same(evaluate(head + around.reduce((text, wrap) => wrap(text), `(${probe})`)));
    }),
    { seed, numRuns },
  );
});
