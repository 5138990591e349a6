// Random values of all kinds that may travel and some that may not, nested, repeated and in cycles. The same
// numbers give the same value, also in another process: so a worker can make a result whose local twin
// exists. Runs in workers, so it uses nothing but Node.

import { runInNewContext } from 'node:vm';
import type { Random } from './random.js';

const readOnly = (value: object, key: string, held: unknown): object =>
  Object.defineProperty(value, key, { value: held, enumerable: true, configurable: true });

function trapped(): never {
  throw new Error('a trap was called');
}

function getAnswer(this: unknown): number {
  return 42;
}
const getters = [
  getAnswer,
  function getThis(this: unknown) {
    return typeof this;
  },
  (): string => 'arrow',
];

export class Point {
  x: unknown;
  constructor(x: unknown) {
    this.x = x;
  }
  double(): unknown {
    return [this.x, this.x];
  }
}
export class Bytes extends Uint8Array {
  tag = 1;
}
export class List extends Array<unknown> {}
export class Failure extends TypeError {
  code = 'E_FAILED';
}

const primitives: readonly unknown[] = [
  undefined,
  null,
  true,
  false,
  0,
  -0,
  7,
  -1,
  2 ** 40,
  1.5,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  5n,
  -(2n ** 70n),
  '',
  'text',
  '\ud800',
  '漢字',
  'x'.repeat(40),
];
const keys = ['a', 'b', 'id', '7', '0', '__proto__', 'constructor', 'length', 'toString', 'then'];

type Make = (make: () => unknown, chance: Random) => unknown;

/** Kinds that hold others come first. */
const containers: readonly Make[] = [
  (make, chance) => fill({}, make, chance),
  (make, chance) => fill({}, make, chance),
  (make, chance) => fill(Object.create(null), make, chance),
  (make, chance) => list(make, chance),
  (make, chance) => list(make, chance),
  (make, chance) => Object.assign(list(make, chance), { columns: make() }),
  (make, chance) => Object.assign(list(make, chance), { [Symbol.for('s')]: make() }),
  (make, chance) => hollow(list(make, chance), chance),
  (make, chance) => Object.freeze(list(make, chance)),
  (make, chance) => Object.freeze(fill({}, make, chance)),
  (make, chance) => Object.seal(fill({}, make, chance)),
  (make, chance) => Object.preventExtensions(fill({}, make, chance)),
  (make, chance) => readOnly(fill({}, make, chance), 'fixed', make()),
  (make, chance) => Object.defineProperty(fill({}, make, chance), 'hidden', { value: make() }),
  (make, chance) => Object.assign(fill({}, make, chance), { [Symbol.for('s')]: make() }),
  (make, chance) => Object.assign(fill({}, make, chance), { [Symbol.iterator]: make() }),
  (make, chance) => accessor(fill({}, make, chance), 'read', chance),
  (make, chance) => accessor(list(make, chance), String(chance.integer(0, 4)), chance),
  (make, chance) => accessor(list(make, chance), 'read', chance),
  (make, chance) => Object.defineProperty(list(make, chance), 'length', { writable: false }),
  (make, chance) => new Map(list(make, chance).map((key) => [key, make()])),
  (make, chance) => new Set(list(make, chance)),
  (make) => Object.assign(new Map([[1, make()]]), { named: make() }),
  (make) => new Point(make()),
  (make) => Object.create(Object.assign(Object.create(null), { inherited: make() })),
  (make, chance) => List.from(list(make, chance)),
  (make) => new Error('plain', { cause: make() }),
  (make) => Object.assign(new Failure('own class'), { detail: make() }),
  (make, chance) => new AggregateError(list(make, chance), 'many'),
  (make) =>
    (function (..._given: unknown[]) {
      // biome-ignore lint/complexity/noArguments: the object itself is wanted
      return arguments;
    })(make(), make()),
];

const leaves: readonly Make[] = [
  (_make, chance) => new Date(chance.integer(0, 2 ** 31)),
  () => new Date(Number.NaN),
  () => /a(b)/giu,
  () => Object.assign(/x/g, { lastIndex: 2 }),
  () => /b/.exec('abc'),
  (_make, chance) => Object(chance.pick([1, -0, 'boxed', true, 9n, Symbol.for('boxed')])),
  () => Object.assign(Object(1), { named: 1 }),
  (_make, chance) => Buffer.from(chance.bytes(chance.integer(0, 20))),
  (_make, chance) => new Uint8Array(chance.bytes(9)).subarray(chance.integer(0, 4), 6),
  (_make, chance) => new Float64Array([chance.next(), -0]),
  () => new BigInt64Array([1n, -1n]),
  () => Object.assign(new Uint16Array(3), { tag: 1 }),
  () => new Bytes(3),
  () => new DataView(new ArrayBuffer(8), 2, 4),
  () => new ArrayBuffer(5),
  () => Object.assign(new ArrayBuffer(2), { tag: 1 }),
  () => Reflect.construct(ArrayBuffer, [4, { maxByteLength: 8 }]),
  () => views(new ArrayBuffer(16)),
  () => views(Object(Reflect.construct(ArrayBuffer, [16, { maxByteLength: 32 }]))),
  () => overlapping(Buffer.from('overlapping')),
  () => Symbol.for('registered'),
  () => Symbol.iterator,
  (_make, chance) => chance.pick(getters),
  () => Math,
  () => Math.max,
  () => Array.prototype,
  () => new URL('http://example.org/a?b=c'),
  () => new URLSearchParams('a=b'),
  () => runInNewContext('({ a: [1, new Map([[1, /x/]]), new TypeError("theirs")] })'),
  () => runInNewContext('new Uint8Array(3)'),
  () => Object.setPrototypeOf(new Map(), Object.prototype),
  () => Object.setPrototypeOf([1], null),
  () => Object.create(Date.prototype),
  // values that are refused, or may be
  () => new Proxy({ a: 1 }, {}),
  () => new Proxy([], { get: () => trapped(), getPrototypeOf: () => trapped() }),
  () => Promise.resolve(1),
  () => new WeakMap(),
  () => [1].values(),
  () => new AbortController().signal,
];

function fill(into: object, make: () => unknown, chance: Random): Record<string, unknown> {
  const filled: Record<string, unknown> = Object(into);
  for (let count = chance.integer(0, 4); count > 0; count -= 1) {
    // Defined, because an assignment to `__proto__` would set the prototype.
    Object.defineProperty(filled, chance.pick(keys), {
      value: make(),
      writable: true,
      enumerable: true,
      configurable: true,
    });
  }
  return filled;
}

function list(make: () => unknown, chance: Random): unknown[] {
  return Array.from({ length: chance.integer(0, 4) }, make);
}

function hollow(items: unknown[], chance: Random): unknown[] {
  items.length += chance.integer(0, 3);
  delete items[chance.integer(0, items.length + 1)];
  return items;
}

function accessor(value: object, key: string, chance: Random): object {
  const hasSetter = chance.integer(0, 2) === 0;
  return Object.defineProperty(value, key, {
    get: chance.pick(getters),
    ...(hasSetter && { set: chance.pick(getters) }),
    enumerable: chance.integer(0, 2) === 0,
    configurable: true,
  });
}

function views(memory: ArrayBuffer): unknown[] {
  return [new Uint8Array(memory, 1, 3), memory, new Uint16Array(memory), Buffer.from(memory, 2, 4)];
}

function overlapping(whole: Buffer): unknown[] {
  return [whole.subarray(2, 5), whole, whole.subarray(7)];
}

/** A value of at most `depth` levels. */
export function makeValue(chance: Random, depth = 3): unknown {
  const made: unknown[] = [];
  const make = (left: number): unknown => {
    const kind = chance.integer(0, 10);
    if (made.length > 0 && kind === 0) return made[chance.integer(0, made.length)]; // again, or a cycle
    if (kind < 4) return primitives[chance.integer(0, primitives.length)];
    const from = left > 0 && kind < 9 ? containers : leaves;
    const value = chance.pick(from)(() => make(left - 1), chance);
    if (typeof value === 'object' && value !== null) {
      made.push(value);
      if (chance.integer(0, 12) === 0) close(value);
    }
    return value;
  };
  return make(depth);
}

/** Puts an object into itself, where it can be changed. */
function close(value: object): void {
  const isOpen = Object.isExtensible(value) && !ArrayBuffer.isView(value) && value !== Math;
  if (isOpen && value !== Array.prototype) Reflect.set(value, 'self', value);
}
