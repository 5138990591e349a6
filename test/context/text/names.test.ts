// `name`, `length` and integrity of a function: as at home, however they were set.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { random } from '../../support/index.js';
import { Peer } from '../harness.js';

const peer = new Peer();
after(() => peer.close());

/** The properties of a function that other code can see; runs on both sides. */
function facts(fn: unknown): unknown {
  if (typeof fn !== 'function') return typeof fn;
  const plain = (key: string) => {
    const { value, writable, enumerable, configurable } =
      Object.getOwnPropertyDescriptor(fn, key) ?? {};
    return [typeof value === 'function' ? 'function' : value, writable, enumerable, configurable];
  };
  return [
    plain('name'),
    plain('length'),
    Object.isFrozen(fn),
    Object.isSealed(fn),
    Object.isExtensible(fn),
  ];
}

async function same(fn: unknown): Promise<void> {
  const home = facts(fn);
  assert.deepEqual(await peer.run(() => facts(fn)), home, 'captured');
  assert.deepEqual(await peer.run((given) => facts(given), fn), home, 'given');
  const box = { deep: [fn] };
  assert.deepEqual(await peer.run(() => facts(box.deep[0])), home, 'inside an object');
}

test('functions and classes keep the names of their variables', async () => {
  const helper = () => 1;
  const Model = class {};
  const o = { b: () => {} };
  assert.deepEqual(
    await peer.run(() => [helper.name, Model.name, new Model().constructor.name, o.b.name]),
    ['helper', 'Model', 'Model', 'b'],
  );
});

test('a callback without captures keeps the name that it has', async () => {
  const names = [];
  for (const key of ['one', 'two', 'three']) {
    const { [key]: made } = { [key]: (self: { name: string }) => self.name };
    assert.ok(made);
    names.push(await peer.run(made, made));
  }
  assert.deepEqual(names, ['one', 'two', 'three']);
});

test('a name that was defined later arrives', async () => {
  await same(Object.defineProperty(() => 1, 'name', { value: 'given' }));
  await same(Object.defineProperty((a: number) => a, 'length', { value: 7 }));
  await same(Object.defineProperty(class {}, 'name', { value: 5, writable: true }));
});

test('a deleted name is missing on the other side', async () => {
  const fn = () => 1;
  Reflect.deleteProperty(fn, 'name');
  Reflect.deleteProperty(fn, 'length');
  await same(fn);
  assert.deepEqual(await peer.run(() => [Object.hasOwn(fn, 'name'), fn.length]), [false, 0]);
});

test('frozen functions and classes stay frozen', async () => {
  await same(Object.freeze(() => 1));
  await same(Object.seal(class {}));
  const Frozen = Object.freeze(class Frozen {});
  Object.freeze(Frozen.prototype);
  assert.ok(await peer.run(() => Object.isFrozen(Frozen) && Object.isFrozen(Frozen.prototype)));
});

test('a static of a class sees the name of the class while it is made', async () => {
  const Model = class {
    static label = `<${nameOf(this)}>`;
    own = 1;
  };
  function nameOf({ name }: { name: string }): string {
    return name;
  }
  assert.equal(await peer.run(() => Model.label), '<Model>');
});

test('F.prototype = {…} keeps its constructor and its sharing', async () => {
  function F() {}
  function G() {}
  F.prototype = { hi: () => 'hi' };
  G.prototype = F.prototype;
  const probe = () => [
    Reflect.construct(F, []).constructor === Object,
    Reflect.construct(F, []) instanceof G,
    Reflect.construct(F, []).hi(),
  ];
  assert.deepEqual(await peer.run(probe), probe());
});

test('what a constructor inherits from another stays inherited', async () => {
  function Base() {}
  function Derived() {}
  Reflect.set(Base, 'create', () => 'made');
  Object.setPrototypeOf(Derived, Base);
  Object.setPrototypeOf(Derived.prototype, Base.prototype);
  const probe = () => [
    Reflect.get(Derived, 'create')(),
    Reflect.construct(Derived, []) instanceof Base,
  ];
  assert.deepEqual(await peer.run(probe), probe());
});

test('random names, lengths and integrity arrive', async (t) => {
  const { seed } = random(t);
  const makers: readonly ((name: string) => unknown)[] = [
    (name) => ({ [name]: () => 1 })[name],
    (name) => ({ [name]: (a: number, b = 2) => a + b })[name],
    (name) =>
      ({
        [name](a: number) {
          return a;
        },
      })[name],
    (name) =>
      ({
        [name]: class {
          constructor(a: number, b: number) {
            void [a, b];
          }
        },
      })[name],
    (name) => ({ [name]: async function* () {} })[name],
    (name) =>
      Object.getOwnPropertyDescriptor(
        {
          get [name]() {
            return 1;
          },
        },
        name,
      )?.get,
    (name) =>
      Object.getOwnPropertyDescriptor(
        class {
          static set [name](value: unknown) {
            void value;
          }
          own = 1;
        },
        name,
      )?.set,
    (name) =>
      function own() {
        return name;
      },
  ];
  const changes: readonly ((fn: object, text: string) => unknown)[] = [
    () => {},
    (fn, text) => Reflect.defineProperty(fn, 'name', { value: text, configurable: true }),
    (fn, text) =>
      Reflect.defineProperty(fn, 'name', { value: text, writable: true, enumerable: true }),
    (fn, text) => Reflect.defineProperty(fn, 'length', { value: text.length }),
    (fn) => Reflect.deleteProperty(fn, 'name'),
    (fn) => Reflect.deleteProperty(fn, 'length'),
    (fn) => Object.freeze(fn),
    (fn) => Object.preventExtensions(fn),
  ];
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 6 }),
    fc.constantFrom(
      '__proto__',
      'constructor',
      'let',
      'a\u2028b',
      '"]',
      "'",
      '\\',
      '`${',
      '',
      '\ud800',
    ),
  );
  const programs = fc.tuple(
    fc.constantFrom(...makers),
    text,
    fc.array(fc.tuple(fc.constantFrom(...changes), text), { maxLength: 3 }),
  );
  const numRuns = Number(process.env['MANYCORE_RUNS'] ?? 40);
  await fc.assert(
    fc.asyncProperty(programs, async ([make, name, then]) => {
      const fn = make(name);
      assert.ok(typeof fn === 'function');
      for (const [change, value] of then) change(fn, value);
      await same(fn);
    }),
    { seed, numRuns },
  );
});
