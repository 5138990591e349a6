// Code without a file: -e, eval, vm and new Function; and variables that change without being named.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import vm from 'node:vm';
import { Peer } from '../harness.js';

const peer = new Peer();
after(() => peer.close());

const library = new URL('../../../src/public.js', import.meta.url).href;

function evaluate(text: string): (...args: unknown[]) => unknown {
  const value: unknown = vm.runInThisContext(text);
  if (typeof value !== 'function') throw new TypeError('the text is not a function');
  return (...args) => Reflect.apply(value, undefined, args);
}

test('require, module, __filename and the modules of Node work in code given with -e', async () => {
  // The library and not the harness: that one would pass -e on to its child.
  const program = `
    import(${JSON.stringify(library)}).then(async ({ run }) => {
      const probe = () => [require('node:path').basename('/a/b'), __filename, typeof module, os.EOL,
        typeof globalThis.path.join, typeof crypto.createHash, typeof process.pid];
      console.log(JSON.stringify(await run(probe)) === JSON.stringify(probe()));
    });`;
  const options = { timeout: 60_000 };
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', program], options);
  assert.equal(stdout.trim(), 'true');
});

test('module.exports of a CommonJS function has the exports of its module', async () => {
  const lib = createRequire(import.meta.url)('../../../../test/context/fixtures/exports.cjs');
  const { viaModule } = lib.make();
  assert.equal(await peer.run(() => viaModule()), 'x');
});

test('functions of one long line keep their places, and take little memory', async () => {
  const body = `{ /* ${'x'.repeat(5000)} */ return new Error('here').stack.split('\\n')[1]; }`;
  const line = `[${Array.from({ length: 300 }, () => `() => ${body}`).join()}]`;
  const list: unknown = new vm.Script(`\n\n${line}`, {
    filename: '/one-line.js',
  }).runInThisContext();
  assert.ok(Array.isArray(list));
  const places = (stacks: readonly string[]) =>
    stacks.map((stack) => /one-line\.js:\d+:\d+/.exec(stack)?.[0]);
  const probe = (): string[] => [0, 1, 150, 299].map((at) => list[at]());
  const home = places(probe());
  assert.match(String(home[3]), /:3:1[45]\d{5}$/);
  assert.deepEqual(places(await peer.run(probe)), home);
  // With spaces up to their columns their sources alone would be 230 MB.
  const heapBytes = await peer.run(() => process.memoryUsage().heapUsed);
  assert.ok(heapBytes < 100_000_000, `${heapBytes} bytes`);
});

test('a variable whose name is let travels', async () => {
  const probe = evaluate('(function () { var let = 5; return () => let; })()');
  assert.equal(await peer.run(probe), 5);
});

test('many functions of many scripts travel in one call', async () => {
  const made: unknown = Array.from({ length: 60 }, (_, i) =>
    i % 2 === 0 ? new Function('a', `return a + ${i}`) : evaluate(`((k) => (a) => a + k)(${i})`),
  );
  const sum = (list: unknown) => {
    if (!Array.isArray(list)) throw new TypeError('not a list');
    return list.reduce((total: number, fn) => total + fn(1), 0);
  };
  assert.equal(await peer.run(() => sum(made)), sum(made));
});

// Code that changes these variables does not name them, so they seem constant.
const hidden: readonly (readonly [how: string, make: string])[] = [
  ['arguments', '(function (a) { return [() => a, (v) => { arguments[0] = v; }]; })(1)'],
  ['eval', '(function (a) { let b = a; return [() => b, (v) => { eval("b = " + v); }]; })(1)'],
  [
    'eval at an inner place',
    '(function () { let b = 1; return [() => b, (v) => { { eval("b = v"); } }]; })()',
  ],
  [
    'another script',
    '(globalThis.set ??= 1, [() => ofScript, (v) => vm.runInThisContext("ofScript = " + v)])',
  ],
];

vm.runInThisContext('let ofScript = 1;');
Reflect.set(globalThis, 'vm', vm);

for (const [how, make] of hidden) {
  test(`a variable that is changed by ${how} is not taken for constant`, async () => {
    const pair: unknown = vm.runInThisContext(make);
    assert.ok(Array.isArray(pair));
    const [read, write] = pair;
    assert.equal(await peer.run(read), 1);
    write(2);
    assert.equal(await peer.run(read), 2);
  });
}

test('an error goes to a process whose intrinsics are frozen', async () => {
  const frozen = new Peer(['--frozen-intrinsics']);
  try {
    const message = await frozen.run((error) => error.message, new RangeError('given'));
    assert.equal(message, 'given');
    await assert.rejects(
      frozen.run(() => {
        throw new TypeError('thrown');
      }),
      { name: 'TypeError', message: 'thrown' },
    );
  } finally {
    frozen.close();
  }
});
