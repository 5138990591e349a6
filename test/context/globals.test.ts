// Globals that the program added, read by their name and as members of the global object.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Peer } from './harness.js';

const peer = new Peer();
const config = { level: 1, nested: { ok: true } };
before(() => Object.assign(globalThis, { manycoreConfig: config, manycoreCount: 1 }));
after(() => {
  peer.close();
  Reflect.deleteProperty(globalThis, 'manycoreConfig');
  Reflect.deleteProperty(globalThis, 'manycoreCount');
});

declare global {
  var manycoreConfig: typeof config;
  var manycoreCount: number;
  var manycoreAbsent: number | undefined;
}

test('a member of the global object arrives as it is at the call', async () => {
  const read = () => [
    globalThis.manycoreConfig.level,
    globalThis['manycoreConfig'].nested?.ok,
    globalThis?.manycoreConfig === manycoreConfig,
    global.manycoreConfig === globalThis.manycoreConfig,
    typeof globalThis.manycoreAbsent,
    typeof globalThis.setTimeout,
  ];
  assert.deepEqual(await peer.run(read), [1, true, true, true, 'undefined', 'function']);
  config.level = 2;
  assert.equal((await peer.run(read))[0], 2);
  assert.deepEqual(await peer.run(read), read());
});

test('one that the function assigns is of the global object where it runs', async () => {
  const count = () => {
    globalThis.manycoreCount = (globalThis.manycoreCount ?? 10) + 1;
    return globalThis.manycoreCount;
  };
  assert.equal(await peer.run(count), 11);
  assert.equal(await peer.run(count), 12);
});

test('a variable called like the global object is none', async () => {
  const read = (globalThis: { readonly manycoreConfig: number }) => globalThis.manycoreConfig;
  assert.equal(await peer.run(read, { manycoreConfig: 5 }), 5);
});

test('a polyfill that was taken from a built-in object travels by value', async () => {
  const added = { value: (list: readonly number[]) => list.at(-1), configurable: true };
  Object.defineProperty(Array, 'manycoreLast', added);
  try {
    const last = added.value;
    assert.equal(await peer.run(() => last([1, 2])), 2);
    const { from } = Array;
    assert.equal(await peer.run(() => from === Array.from), true);
    const { createObjectURL } = URL;
    assert.equal(await peer.run(() => createObjectURL === URL.createObjectURL), true);
  } finally {
    Reflect.deleteProperty(Array, 'manycoreLast');
  }
});
