// Values in variables: copied in, frozen, the same for each reader; what cannot be held is refused by its path.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../../src/errors.js';
import { atomically, type TVar, tvar } from '../../src/stm/public.js';
import { random } from '../support/index.js';

/** The value that a transaction reads, after one that has set `value`. */
function stored(value: unknown): unknown {
  const variable = tvar<unknown>(undefined);
  atomically(() => variable.set(value));
  return atomically(() => variable.get());
}

const plain: readonly unknown[] = [
  undefined,
  null,
  true,
  false,
  0,
  -0,
  1,
  -(2 ** 31),
  2 ** 31,
  0.1,
  -1.5e300,
  Number.MAX_SAFE_INTEGER,
  Infinity,
  NaN,
  0n,
  -1n,
  2n ** 63n - 1n,
  2n ** 63n,
  -(2n ** 200n),
  '',
  'lamp',
  'Glühlampe',
  '\u0000ÿ',
  '日本語',
  '\ud800 alone',
  [],
  [1, 'two', [undefined, null]],
  {},
  { a: 1, b: { c: [true] } },
  { ['__proto__']: 1, constructor: 2, 日本: 3 },
  Object.assign(Object.create(null), { a: 1 }),
];

test('plain values come out as they went in, at the start and after a set', () => {
  for (const value of plain) {
    assert.deepStrictEqual(stored(value), value);
    const variable = tvar(value);
    assert.deepStrictEqual(variable.peek(), value);
    assert.deepStrictEqual(
      atomically(() => variable.get()),
      value,
    );
  }
});

test('random nested values come out as they went in', (t) => {
  const { integer } = random(t);
  const leaf = (): unknown => plain[integer(0, plain.length)];
  const make = (depth: number): unknown => {
    const kind = depth === 0 ? 0 : integer(0, 3);
    if (kind === 0) return leaf();
    const parts = Array.from({ length: integer(0, 6) }, () => make(depth - 1));
    return kind === 1 ? parts : Object.fromEntries(parts.map((part, at) => [`key${at}`, part]));
  };
  for (let round = 0; round < 500; round += 1) {
    const value = make(4);
    assert.deepStrictEqual(stored(value), value);
  }
});

test('bytes are copied both ways', () => {
  const bytes = new Uint8Array([1, 2, 3]);
  const variable = tvar<Uint8Array>(bytes);
  bytes[0] = 9;
  const first = variable.peek();
  assert.deepStrictEqual(first, new Uint8Array([1, 2, 3]));
  first[1] = 9;
  assert.deepStrictEqual(variable.peek(), new Uint8Array([1, 2, 3]));
});

test('a value is a copy, deeply frozen, and the same object until it changes', () => {
  const source = { lamps: [{ name: 'one' }] };
  const variable = tvar(source);
  source.lamps.push({ name: 'two' });
  const value = atomically(() => variable.get());
  assert.equal(value.lamps.length, 1);
  assert.ok(
    Object.isFrozen(value) && Object.isFrozen(value.lamps) && Object.isFrozen(value.lamps[0]),
  );
  assert.equal(
    atomically(() => variable.get()),
    value,
  );
  assert.equal(variable.peek(), value);
  const set = atomically(() => {
    variable.set({ lamps: [...value.lamps, { name: 'three' }] });
    const own = variable.get();
    assert.equal(variable.get(), own);
    assert.ok(Object.isFrozen(own.lamps));
    return own;
  });
  assert.deepEqual(set, variable.peek());
});

test('variables are held by variables, and are the same ones', () => {
  const inner = tvar(1);
  const outer = tvar<TVar<number>>(inner);
  const list = tvar<readonly TVar<number>[]>([inner, inner]);
  atomically(() => outer.get().set(2));
  assert.equal(outer.peek(), inner);
  assert.equal(list.peek()[1], inner);
  assert.equal(inner.peek(), 2);
});

const circular: { self?: unknown } = {};
circular.self = circular;
const holes = [1, 2, 3];
delete holes[1];

const refused: readonly (readonly [string, unknown, RegExp])[] = [
  ['a function', () => 1, /the value is a function/],
  ['a symbol', Symbol('x'), /the value is Symbol\(x\)/],
  ['an instance', new Date(0), /the value is an instance of Date/],
  ['a map inside', { a: [new Map()] }, /value\.a\[0\] is an instance of Map/],
  ['a buffer of another kind', new Float64Array(1), /the value is an instance of Float64Array/],
  [
    'an accessor',
    Object.defineProperty({}, 'a', { get: () => 1, enumerable: true }),
    /value\.a is an accessor/,
  ],
  [
    'a hidden property',
    Object.defineProperty({}, 'a', { value: 1 }),
    /value\.a is an accessor or hidden/,
  ],
  ['a symbol as a name', { [Symbol('s')]: 1 }, /the value has the symbol Symbol\(s\)/],
  ['a cycle', circular, /contains itself/],
  ['holes', { list: holes }, /value\.list is an array with holes/],
  ['a proxy', new Proxy({}, {}), /the value is a proxy/],
  ['a promise', Promise.resolve(1), /the value is an instance of Promise/],
];

test('what a variable cannot hold is refused by its path, without an effect', () => {
  for (const [name, value, says] of refused) {
    const isRefused = (error: unknown) =>
      hasCode(error, 'STM_VALUE') && says.test(error.message) && /a TVar holds/.test(error.message);
    assert.throws(() => tvar(value), isRefused, name);
    const [variable, other] = [tvar<unknown>('before'), tvar(1)];
    const set = () =>
      atomically(() => {
        other.set(2);
        variable.set(value);
      });
    assert.throws(set, isRefused, name);
    assert.deepEqual([variable.peek(), other.peek()], ['before', 1], name);
  }
});

test('a value of 64 KiB is held, a larger one is refused', () => {
  const largest = 'x'.repeat(65_536 - 5);
  assert.equal(stored(largest), largest);
  const isTooLarge = (error: unknown) => hasCode(error, 'STM_VALUE_TOO_LARGE');
  assert.throws(() => tvar(`${largest}x`), isTooLarge);
  assert.throws(() => stored([largest]), isTooLarge);
});

test('what arrives as a variable and is none of this memory is refused', () => {
  const variable = tvar(1);
  const [send, receive] = ['manycore.send', 'manycore.receive'].map((name) => Symbol.for(name));
  const method = (holder: object, key = Symbol('none')) => Reflect.get(holder, key);
  const sent: Readonly<Record<'space' | 'at' | 'header', number>> = Object(
    Reflect.apply(method(variable, send), variable, []),
  );
  const arrive = (data: unknown): TVar<number> =>
    Reflect.apply(method(variable.constructor, receive), undefined, [data]);
  assert.equal(arrive(sent), variable);
  const forged: readonly (readonly [change: object, code: string])[] = [
    [{ space: sent.space + 1 }, 'STM_OTHER_MEMORY'],
    [{ space: undefined }, 'STM_OTHER_MEMORY'],
    [{ at: 'x' }, 'STM_GONE'],
    [{ at: 0 }, 'STM_GONE'],
    [{ at: 2 ** 31 - 1 }, 'STM_GONE'],
    [{ header: undefined }, 'STM_GONE'],
    [{ header: sent.header + 256 }, 'STM_GONE'],
  ];
  for (const [change, code] of forged) {
    assert.throws(() => arrive({ ...sent, ...change }).peek(), { code }, JSON.stringify(change));
  }
  assert.equal(variable.peek(), 1);
});
