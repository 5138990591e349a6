// Bound functions: their targets and arguments, and properties that were set on them.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Peer } from '../harness.js';

const peer = new Peer();
after(() => peer.close());

type Bound = ((...args: unknown[]) => unknown) & { extra?: unknown };

function target(this: unknown, ...args: unknown[]): unknown {
  return [this, args];
}

class Pair {
  readonly both: readonly unknown[];
  constructor(...both: readonly unknown[]) {
    this.both = both;
  }
}

const made: readonly (readonly [title: string, make: (bound: Bound) => Bound])[] = [
  ['as it was made', (bound) => bound],
  ['with a property', (bound) => Object.assign(bound, { extra: [1] })],
  ['with itself as a property', (bound) => Object.assign(bound, { extra: bound })],
  [
    'with an accessor',
    (bound) => Object.defineProperty(bound, 'extra', { get: () => bound.name, enumerable: true }),
  ],
  ['with a symbol', (bound) => Object.assign(bound, { [Symbol.for('extra')]: 1 })],
  ['with another name', (bound) => Object.defineProperty(bound, 'name', { value: 'other' })],
  [
    'with a name that is seen',
    (bound) => Object.defineProperty(bound, 'name', { enumerable: true }),
  ],
  ['with another length', (bound) => Object.defineProperty(bound, 'length', { value: 7 })],
  [
    'without a name',
    (bound) => {
      Reflect.deleteProperty(bound, 'name');
      return bound;
    },
  ],
  ['with another prototype', (bound) => Object.setPrototypeOf(bound, { inherited: 1 })],
  ['without a prototype', (bound) => Object.setPrototypeOf(bound, null)],
  ['frozen', (bound) => Object.freeze(bound)],
  ['sealed with a property', (bound) => Object.seal(Object.assign(bound, { extra: 1 }))],
  ['bound again', (bound) => Object.assign(bound.bind('none', 2), { extra: 2 })],
  ['closed to properties', (bound) => Object.preventExtensions(bound)],
];

function see(bound: Bound): unknown {
  const above: object | null = Object.getPrototypeOf(bound);
  return [
    Object.getOwnPropertyDescriptors(bound.extra === bound ? { itself: bound.name } : bound),
    Object.isFrozen(bound),
    Object.isSealed(bound),
    Object.isExtensible(bound),
    above === Function.prototype,
    above !== null && Reflect.get(above, 'inherited'),
    Reflect.apply(bound, undefined, [3]),
  ].map((part) => JSON.stringify(part));
}

for (const [title, make] of made) {
  test(`a bound function ${title} arrives as it was`, async () => {
    const bound = make(target.bind({ self: 1 }, 'first') as Bound);
    const home = see(bound);
    assert.deepEqual(await peer.run(() => see(bound)), home);
    assert.deepEqual(await peer.run(see, bound), home);
    assert.equal(await peer.run((given) => given, bound), bound);
    const there = await peer.run((text) => {
      const makeThere: (bound: Bound) => Bound = Reflect.get(globalThis, 'eval')(text);
      return makeThere(target.bind({ self: 1 }, 'first') as Bound);
    }, `(${make})`);
    assert.deepEqual(see(there), home);
  });
}

test('a bound function keeps its name and length when those of its target change', async () => {
  const later = (a: number, b: number) => a + b;
  const bound = later.bind(null, 1);
  Object.defineProperty(later, 'name', { value: 'renamed' });
  Object.defineProperty(later, 'length', { value: 9 });
  assert.deepEqual(await peer.run(() => [bound.name, bound.length, bound(2)]), [
    'bound later',
    1,
    3,
  ]);
});

test('primitives that a function is bound to arrive', async () => {
  const values = [Symbol('own'), Symbol.iterator, 1, -0, 5n, 'text', true, null, undefined];
  for (const value of values) {
    const bound = function (this: unknown, ...given: unknown[]) {
      return [typeof this, Object.is(this, given[0]), Object.is(given[0], given[1])];
    }.bind(value, value);
    assert.deepEqual(await peer.run((given) => bound(given), value), bound(value));
  }
});

test('bound classes, generators and built-in functions travel', async () => {
  const One = Pair.bind(null, 1);
  const count = function* (from: number, to: number) {
    for (let at = from; at < to; at += 1) yield at;
  }.bind(null, 1);
  const max = Math.max.bind(null, 1);
  const map = new Map([[1, 2]]);
  const get = map.get.bind(map);
  const probe = () => {
    map.set(3, 4);
    const pair = Reflect.construct(One, [2]);
    return [pair instanceof Pair, pair instanceof One, pair, [...count(4)], max(0), max(5), get(3)];
  };
  const there = await peer.run(probe);
  map.delete(3);
  assert.deepEqual(there, probe());
});

test('a bound function shares objects with captures and arguments', async () => {
  const state = { n: 1, list: [1] };
  const bound = function (this: typeof state, list: number[]) {
    return [this.n, this.list === list, list];
  }.bind(state, state.list);
  const itself: Bound = function (this: { bound?: unknown }) {
    return this.bound === itself;
  }.bind({}) as Bound;
  const holder: { bound?: Bound } = {};
  holder.bound = function (this: typeof holder) {
    return this.bound === holder.bound;
  }.bind(holder) as Bound;
  const probe = (given: typeof state, again: typeof bound) => {
    given.n = 5;
    given.list.push(2);
    return [bound(), again === bound, itself(), holder.bound?.()];
  };
  assert.deepEqual(await peer.run(probe, state, bound), [[5, true, [1, 2]], true, false, true]);
});
