// Captures and arguments may be one object, or hold one object: as without workers.

import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { after, test } from 'node:test';
import { hasCode } from '../../../src/errors.js';
import { Pool } from '../../../src/pool/index.js';

const pool = new Pool({ size: 1, worker: 'thread' });
after(() => pool.close());

interface Node {
  n: number;
  next?: Node | undefined;
}

test('an argument that the function captured is the same object in the worker', async () => {
  const node: Node = { n: 0 };
  const change = (given: Node): number => {
    given.n = 5;
    return node.n;
  };
  assert.equal(await pool.run(change, node), 5);
  assert.equal(node.n, 0);
});

test('so is what lies in an argument, in a Map, behind a view', async () => {
  const node: Node = { n: 0 };
  const bytes = new Uint8Array(4);
  const changeIn = (given: readonly Node[]): number => {
    for (const each of given) each.n += 1;
    return node.n;
  };
  assert.equal(await pool.run(changeIn, [{ n: 7, next: node }, node]), 1);
  const changeKey = (given: Map<Node, number>): number | undefined => given.get(node);
  assert.equal(await pool.run(changeKey, new Map([[node, 3]])), 3);
  const write = (view: Uint8Array): number | undefined => {
    view[1] = 9;
    return bytes[1];
  };
  assert.equal(await pool.run(write, new Uint8Array(bytes.buffer)), 9);
});

test('so is what an array holds under a name, or one without a prototype', async () => {
  const node: Node = { n: 0 };
  const isSame = (given: { node?: Node; 0?: Node }): boolean =>
    given.node === node || given[0] === node;
  assert.equal(await pool.run(isSame, Object.assign([1], { node })), true);
  assert.equal(await pool.run(isSame, Object.setPrototypeOf([node], null)), true);
  assert.equal(await pool.run(isSame, Object.setPrototypeOf([{ n: 1 }], null)), false);
});

test('looking for it runs no code of the arguments, however deep they are', async () => {
  const node: Node = { n: 0 };
  const count = (given: object): number => Object.keys(given).length + node.n;
  let reads = 0;
  const list = Object.defineProperty([1], 0, { get: () => ++reads, enumerable: true });
  assert.equal(await pool.run(count, list), 1);
  assert.equal(reads, 0);
  const trapped = new Proxy({}, { getPrototypeOf: () => assert.fail('a trap was called') });
  await assert.rejects(pool.run(count, trapped), (error) => hasCode(error, 'TRANSFER_UNSUPPORTED'));
  let deep: Node = { n: 0 };
  for (let level = 0; level < 20_000; level += 1) deep = { n: level, next: deep };
  await assert.rejects(pool.run(count, deep), (error) => {
    assert.ok(hasCode(error, 'TRANSFER_UNSUPPORTED'), String(error));
    assert.match(error.message, /nested too deeply: flatten it.*\n {2}path: /);
    return true;
  });
});

test('a function that is passed writes into what the other captured', async () => {
  const seen = new Map<string, number>();
  const add = (key: string): unknown => seen.set(key, 1);
  const count = (give: (key: string) => unknown): number => {
    give('x');
    return seen.size;
  };
  assert.equal(await pool.run(count, add), 1);
  assert.equal(seen.size, 0);
});

test('an argument that is the store of the call is the same object in the worker', async () => {
  const storage = new AsyncLocalStorage<Node>();
  const store: Node = { n: 1 };
  const isStore = (given: Node): boolean => given === storage.getStore();
  assert.equal(await storage.run(store, () => pool.run(isStore, store)), true);
  assert.equal(await storage.run(store, () => pool.run(isStore, { n: 1 })), false);
});

test('what cannot travel is refused with its path among the arguments', async () => {
  const node: Node & { pending?: unknown } = { n: 0, pending: Promise.resolve() };
  const read = (given: unknown[]): boolean => given[0] === node;
  await assert.rejects(
    () => pool.run(read, [1, { node: Promise.resolve() }]),
    (error) => hasCode(error, 'TRANSFER_UNSUPPORTED'),
  );
  const clean: Node = { n: 0 };
  const first = (given: unknown[]): boolean => given[0] === clean;
  await assert.rejects(
    () => pool.run(first, [clean, { deep: Promise.resolve() }]),
    (error) =>
      hasCode(error, 'TRANSFER_UNSUPPORTED') && /the arguments\[0\]\[1\]\.deep/.test(String(error)),
  );
});

test('an array that lost the methods of arrays is passed beside one that was captured', async () => {
  const captured = [1];
  const bare: unknown = Object.setPrototypeOf([2], null);
  const read = (given: unknown) => [captured[0], Reflect.get(Object(given), 0)];
  const seen = await pool.run(read, bare);
  assert.deepEqual(seen, [1, 2]);
});
