// Direct eval sees every variable around it, so all of them travel.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import vm from 'node:vm';
import { closureReader } from '../../../src/context/closures/closure-reader.js';
import { hasCode } from '../../../src/errors.js';
import { random } from '../../support/index.js';
import { Peer } from '../harness.js';

const peer = new Peer();
after(() => peer.close());

type Probe = (...args: unknown[]) => unknown;

/** The function that a script makes, with nothing of this module around it. */
function made(script: string): Probe {
  const value: unknown = vm.runInThisContext(script);
  if (typeof value !== 'function') throw new TypeError('the script makes no function');
  return (...args) => Reflect.apply(value, undefined, args);
}

async function same(script: string, ...args: unknown[]): Promise<void> {
  const probe = made(script);
  assert.deepEqual(await peer.run(probe, ...args), probe(...args));
}

test('a direct eval reads constants, variables, parameters and functions around it', async () => {
  await same(
    `(function (p) {
    const c = 1; let l = [2]; var v = { v: 3 }; function f() { return c + 10; }
    { const inner = 5; return function (text) { return eval(text); } }
  })(4)`,
    '[c, l, v, f(), p, inner]',
  );
});

test('a direct eval deeper inside, and one that assigns, see the same', async () => {
  await same(`(function () { let n = 1; return function () {
    const read = () => eval('n'); eval('n += 5'); return [read(), n]; } })()`);
});

test('a variable that an eval cannot name is not read', async () => {
  await same(`(function () { const a = 1; return function () {
    return eval('typeof a + typeof nowhere'); } })()`);
});

test('a value that cannot travel is refused with the eval that may use it', async () => {
  const probe = made(
    `(function () { const held = new WeakMap(); return function () { return eval('1'); } })()`,
  );
  await assert.rejects(
    peer.run(probe),
    (error) =>
      hasCode(error, 'TRANSFER_UNSUPPORTED') &&
      /variable held, which its eval\(\) may use/.test(String(error)),
  );
});

test('two functions of one variable are refused when the eval of one may assign it', async () => {
  const probe = made(`(function () { let n = 0;
    const read = function () { return n; }, write = function (text) { return eval(text); };
    return function () { write('n = 1'); return read(); } })()`);
  await assert.rejects(
    peer.run(probe),
    (error) =>
      hasCode(error, 'TRANSFER_SHARED_VARIABLE') &&
      /the eval\(\) of the function write sees `n`, which .*\(0, eval\)/.test(String(error)),
  );
});

test('an arrow with an eval has the `this` around it, or is refused', async () => {
  const probe = made(`(function () { return () => eval('this.x') }).call({ x: 1 })`);
  if (closureReader() !== undefined) {
    assert.equal(await peer.run(probe), 1);
    return;
  }
  await assert.rejects(
    peer.run(probe),
    (error) =>
      hasCode(error, 'TRANSFER_UNREADABLE') &&
      /its eval\(\) may use `this`.* instead/.test(String(error)),
  );
});

const superUses: Readonly<Record<string, string>> = {
  'a method': `({ __proto__: { x: 5 }, m() { return eval('super.x'); } }).m`,
  'a method that assigns': `(() => { const o = { __proto__: { x: 5 }, m() { return eval('super.x = 1'); } };
    return () => o.m(); })()`,
  'a getter': `(() => { const o = { __proto__: { x: 5 }, get m() { return eval('super.x'); } };
    return () => o.m; })()`,
  'an arrow in a method': `({ __proto__: { x: 5 }, m() { return () => eval('super.x'); } }).m()`,
  'a method of a class that was moved': `(() => { const o = {};
    o.m = (class { m() { return eval('super.x'); } }).prototype.m; return () => o.m(); })()`,
};

for (const [title, script] of Object.entries(superUses)) {
  test(`super in a text given to eval() is refused in ${title}`, async () => {
    await assert.rejects(peer.run(made(script)), (error) => hasCode(error, 'TRANSFER_UNREADABLE'));
  });
}

test('an eval in a class sees its super, and one that names none works in a method', async () => {
  await same(`() => new (class extends (class { x() { return 5; } }) {
    m() { return eval('super.x()'); } })().m()`);
  await same(`({ __proto__: { x: 5 }, m() { return eval('1 + 1'); } }).m`);
});

test('an eval in an arrow sees the arguments of the function around it', async () => {
  const fn = made(`(function () { return arguments[0](() => eval('arguments[1]')); })`);
  assert.equal(await fn((inner: Probe) => peer.run(inner), 7), 7);
});

test('random scopes: an eval gives the same as at home', async (t) => {
  const chance = random(t);
  for (let round = 0; round < Number(process.env['MANYCORE_RUNS'] ?? 40); round += 1) {
    const names = new Set<string>();
    let script = chance.pick([
      "function (text) { 'use strict'; return eval(text); }",
      'function (text) { return eval(text); }',
    ]);
    script = `(${script})`;
    for (let depth = 0; depth < chance.integer(1, 5); depth += 1) {
      const declared: string[] = [];
      for (const name of ['a', 'b', 'c', `d${depth}`]) {
        if (chance.next() < 0.4) continue;
        names.add(name); // an inner one hides that of a scope around it
        const kind = chance.pick(['const', 'let', 'var']);
        declared.push(
          `${kind} ${name} = ${chance.pick(['1', "'text'", '[depth()]', '{ n: 2 }'])};`,
        );
      }
      script = `(function (depth) { ${declared.join(' ')} return ${script}; })(() => ${depth})`;
    }
    const parts = [...names].map((name) => `[typeof ${name}, ${name}]`);
    if (chance.next() < 0.3) parts.push("(() => { var a = 'own'; return a; })()");
    await same(script, `[${parts.join()}]`);
  }
});
