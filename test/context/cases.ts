// Long (over 400 lines), because it is one table: a case is a few lines, and loaders run all of them. Values
// that travel, one case each. A case gets `run`, which calls a function in another process, and asserts on
// the result. Run by cases.test.ts (here) and by the programs in fixtures/.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import * as path from 'node:path';
import { basename as base } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import double, * as shapes from './cases-module.js';
import { hash, makeAdder, Shape, state } from './cases-module.js';

export type Run = <A extends unknown[], R>(
  fn: (...args: A) => R | Promise<R>,
  ...args: A
) => Promise<Awaited<R>>;

export type Case = readonly [title: string, check: (run: Run) => Promise<void>];

const topConstant = 10;
let topChanging = 1;
function withCapture(value: number): number {
  return value + topConstant;
}
function factorial(n: number): number {
  return n < 2 ? 1 : n * factorial(n - 1);
}
function isEven(n: number): boolean {
  return n === 0 || isOdd(n - 1);
}
function isOdd(n: number): boolean {
  return n !== 0 && isEven(n - 1);
}
const readAlias = fs.readFileSync;
const log = console.log;

export const cases: readonly Case[] = [
  ['a function without captures', async (run) => assert.equal(await run(() => 6 * 7), 42)],
  [
    'a local constant, a block, a shadowed name',
    async (run) => {
      const value = 1;
      {
        const value = 2;
        assert.equal(await run(() => value), 2);
      }
      assert.equal(await run(() => value), 1);
    },
  ],
  [
    'the loop variable of each iteration',
    async (run) => {
      const fns = [];
      for (let i = 0; i < 3; i += 1) fns.push(() => i);
      assert.deepEqual(await Promise.all(fns.map((fn) => run(fn))), [0, 1, 2]);
    },
  ],
  [
    'parameters, destructured and with defaults',
    async (run) => {
      const outer = ({ a, b = 5 }: { a: number; b?: number }, ...rest: number[]) =>
        run(() => [a, b, rest]);
      assert.deepEqual(await outer({ a: 1 }, 2, 3), [1, 5, [2, 3]]);
    },
  ],
  [
    'the variable of a catch clause',
    async (run) => {
      try {
        throw new RangeError('caught');
      } catch (error) {
        const result = await run(() => error);
        assert.ok(result instanceof RangeError);
        assert.equal(result.message, 'caught');
      }
    },
  ],
  [
    'the value at the call, not a later one',
    async (run) => {
      const box = { n: 1 };
      const pending = run(() => box.n);
      box.n = 2;
      assert.equal(await pending, 1);
      assert.equal(await run(() => box.n), 2);
    },
  ],
  [
    'a variable changed between two calls of the same function',
    async (run) => {
      let n = 1;
      const read = () => n;
      assert.equal(await run(read), 1);
      n = 2;
      assert.equal(await run(read), 2);
      assert.equal(await run(read), 2);
    },
  ],
  [
    'calls at the same time of one function whose variable changes',
    async (run) => {
      let n = 0;
      const read = () => n;
      const pending = [];
      for (n = 0; n < 5; n += 1) pending.push(run(read));
      assert.deepEqual(await Promise.all(pending), [0, 1, 2, 3, 4]);
    },
  ],
  [
    'writes in the peer stay there',
    async (run) => {
      let n = 1;
      assert.equal(
        await run(() => {
          n += 1;
          return n;
        }),
        2,
      );
      assert.equal(n, 1);
    },
  ],
  [
    'module functions with captures of their own',
    async (run) => {
      topChanging = 7;
      assert.deepEqual(await run(() => [withCapture(1), topChanging]), [11, 7]);
    },
  ],
  ['recursion', async (run) => assert.equal(await run(() => factorial(5)), 120)],
  ['mutual recursion', async (run) => assert.equal(await run(() => isEven(10)), true)],
  [
    'local functions that call each other',
    async (run) => {
      const ping = (n: number): number => (n === 0 ? 0 : 1 + pong(n - 1));
      const pong = (n: number): number => (n === 0 ? 0 : 1 + ping(n - 1));
      assert.equal(await run(() => ping(9)), 9);
    },
  ],
  [
    'imports of Node: default, named, namespace, renamed',
    async (run) =>
      assert.deepEqual(
        await run(() => [
          typeof fs.readFileSync,
          base('/a/b'),
          path.join('a', 'b'),
          createHash('sha1').update('x').digest('hex').length,
          isDeepStrictEqual([1], [1]),
        ]),
        ['function', 'b', 'a/b', 40, true],
      ),
  ],
  [
    "imports of the user's modules: default, named, namespace, class",
    async (run) => {
      const shape = new Shape(3);
      const result = await run(() => [
        double(4),
        shapes.hash('a') === hash('a'),
        shape instanceof Shape,
        shape instanceof shapes.Shape,
        shape.describe(),
      ]);
      assert.deepEqual(result, [8, true, true, true, '3 sides']);
    },
  ],
  [
    "an instance of an imported class as argument and result keeps the caller's class",
    async (run) => {
      const result = await run((shape) => new Shape(shape.sides + 1), new Shape(4));
      assert.ok(result instanceof Shape);
      assert.equal(result.describe(), '5 sides');
    },
  ],
  [
    'imported modules have their own state in the peer',
    async (run) => {
      state.count = 5;
      const seen = await run(() => state.count);
      state.count = 0;
      assert.equal(seen, 0);
    },
  ],
  [
    'a function of another module, with its imports and variables',
    async (run) => {
      assert.equal(await run(makeAdder(1), 2), 3);
      assert.equal((await run(hash, 'x')).length, 40);
    },
  ],
  [
    'import() inside, also relative',
    async (run) => {
      const result = await run(async () => {
        const module = await import('./cases-module.js');
        const { sep } = await import('node:path');
        return [module.default(3), sep];
      });
      assert.deepEqual(result, [6, '/']);
    },
  ],
  [
    'import.meta inside',
    async (run) => {
      const { url, file } = await run(() => ({
        url: import.meta.url,
        file: import.meta.resolve('./cases-module.js'),
      }));
      assert.equal(url, import.meta.url);
      assert.equal(file, new URL('./cases-module.js', import.meta.url).href);
    },
  ],
  [
    'aliases of built-in functions',
    async (run) => {
      const { max } = Math;
      const slice = Array.prototype.slice;
      const result = await run(() => [
        max(1, 2),
        slice.call([1, 2, 3], 1),
        typeof readAlias,
        typeof log,
      ]);
      assert.deepEqual(result, [2, [2, 3], 'function', 'function']);
    },
  ],
  ['a built-in function itself', async (run) => assert.equal(await run(Math.max, 3, 4), 4)],
  ['a function of Node itself', async (run) => assert.equal(await run(path.basename, '/a/b'), 'b')],
  [
    'typeof of a name that is nowhere',
    async (run) => {
      // @ts-expect-error: the point of the case
      assert.equal(await run(() => typeof notDeclaredAnywhere), 'undefined');
    },
  ],
  [
    'built-in globals are those of the peer',
    async (run) => assert.notEqual(await run(() => process.pid), process.pid),
  ],
  [
    "a global of the user's",
    async (run) => {
      Reflect.set(globalThis, 'casesGlobal', { n: 5 });
      // @ts-expect-error: set above
      assert.equal(await run(() => casesGlobal.n), 5);
      Reflect.deleteProperty(globalThis, 'casesGlobal');
    },
  ],
  [
    'async functions, generators and async generators',
    async (run) => {
      const later = async (n: number) => n + 1;
      function* count(n: number) {
        for (let i = 0; i < n; i += 1) yield i;
      }
      async function* slowly(n: number) {
        yield* count(n);
      }
      const result = await run(async () => {
        const seen = [await later(1), ...count(3)];
        for await (const i of slowly(2)) seen.push(i);
        return seen;
      });
      assert.deepEqual(result, [2, 0, 1, 2, 0, 1]);
    },
  ],
  [
    'curried functions and default parameters',
    async (run) => {
      const add = (a: number) => (b: number) => a + b;
      const add5 = add(5);
      const greet = (name = 'you', mark = '!') => `${name}${mark}`;
      assert.deepEqual(await run(() => [add5(1), greet(), greet('I')]), [6, 'you!', 'I!']);
    },
  ],
  [
    'functions with properties',
    async (run) => {
      const counter = Object.assign(() => counter.count, { count: 3 });
      assert.equal(await run(() => counter() + counter.count), 6);
    },
  ],
  [
    'objects that mix functions and data',
    async (run) => {
      const api = {
        base: 10,
        add(n: number) {
          return this.base + n;
        },
        nested: { twice: (n: number) => api.add(n) * 2 },
        async later() {
          return this.base;
        },
        *each() {
          yield this.base;
        },
        ['computed' + 1]() {
          return 'c';
        },
      };
      const result = await run(async () => [
        api.add(1),
        api.nested.twice(1),
        await api.later(),
        ...api.each(),
        api['computed1'] instanceof Function && api['computed1'].name,
      ]);
      assert.deepEqual(result, [11, 22, 10, 10, 'computed1']);
    },
  ],
  [
    'objects that are globals of Node, held by something else',
    async (run) => {
      const names = ['performance', 'crypto', 'process', 'navigator', 'console', 'Intl'];
      const held = names.map((name): unknown => Reflect.get(globalThis, name));
      const others = await run(() =>
        names.filter((name, at) => held[at] !== Reflect.get(globalThis, name)),
      );
      assert.deepEqual(others, []);
    },
  ],
  [
    'an array with as many names as holes',
    async (run) => {
      const sparse: unknown[] = Object.assign([1, 2, 3], { name: 'kept' });
      delete sparse[1];
      const shape = (value: unknown[]) => [Object.keys(value), 1 in value, value.length];
      assert.deepEqual(await run(() => shape(sparse)), shape(sparse));
      assert.deepEqual(await run(shape, sparse), shape(sparse));
    },
  ],
  [
    'the order of properties, whatever their flags',
    async (run) => {
      const object = {
        get first() {
          return 1;
        },
        second: 2,
        third: 3,
      };
      const fixed = Object.defineProperty({}, 'z', { value: 1, enumerable: true });
      const added = Object.assign(fixed, { a: { deep: true }, b: 3 });
      class Point {
        x = 1;
      }
      const point = Object.assign(
        Object.defineProperty(new Point(), 'pre', { value: 1, enumerable: true }),
        { y: 2 },
      );
      const orders = () => [object, added, point].map((value) => Object.keys(value).join());
      assert.deepEqual(await run(orders), orders());
      const asArgument = (...values: object[]) => values.map((value) => Object.keys(value).join());
      assert.deepEqual(await run(asArgument, object, added, point), orders());
    },
  ],
  [
    'accessors, read-only and hidden properties, frozen and sealed objects',
    async (run) => {
      const object = Object.defineProperty(
        {
          first: 'a',
          get both() {
            return `${this.first}b`;
          },
          set both(value: string) {
            this.first = value;
          },
        },
        'hidden',
        { value: 1 },
      );
      const frozen = Object.freeze({ deep: Object.freeze([1]) });
      const sealed = Object.seal({ a: 1 });
      const result = await run(() => {
        object.both = 'z';
        const hidden = Object.getOwnPropertyDescriptor(object, 'hidden');
        return [
          object.both,
          Object.keys(object),
          hidden?.value,
          hidden?.writable,
          Object.isFrozen(frozen) && Object.isFrozen(frozen.deep),
          Object.isSealed(sealed),
        ];
      });
      assert.deepEqual(result, ['zb', ['first', 'both'], 1, false, true, true]);
    },
  ],
  [
    'objects with a prototype, and without',
    async (run) => {
      const proto = { hello: () => 'hello', shared: 1 };
      const child = Object.create(proto, { own: { value: 2, enumerable: true } });
      const bare = Object.assign(Object.create(null), { x: 1 });
      const result = await run(() => [
        child.hello(),
        child.shared,
        Object.keys(child),
        Object.getPrototypeOf(child) === proto,
        Object.getPrototypeOf(bare),
        bare.x,
      ]);
      assert.deepEqual(result, ['hello', 1, ['own'], true, null, 1]);
    },
  ],
  [
    'bound functions',
    async (run) => {
      function sum(this: { base: number }, a: number, b: number) {
        return this.base + a + b;
      }
      const bound = sum.bind({ base: 100 }, 10);
      assert.equal(await run(() => bound(1)), 111);
      assert.equal(await run(bound, 2), 112);
    },
  ],
  [
    'symbols: own, registered, well-known, as keys',
    async (run) => {
      const own = Symbol('own');
      const object = {
        [own]: 1,
        [Symbol.for('reg')]: 2,
        [Symbol.iterator]: () => [7][Symbol.iterator](),
      };
      const result = await run(() => ({
        values: [object[own], object[Symbol.for('reg')], ...object],
        own,
        description: own.description,
      }));
      assert.deepEqual(result.values, [1, 2, 7]);
      assert.equal(result.own, own);
      assert.equal(result.description, 'own');
    },
  ],
  [
    'a class and its instance',
    async (run) => {
      class Counter {
        static made = 5;
        n = 1;
        get next() {
          return this.n + 1;
        }
        add(by: number) {
          this.n += by;
          return this;
        }
        static make() {
          Counter.made += 1;
          return new Counter();
        }
      }
      const counter = new Counter();
      counter.n = 10;
      Counter.made = 8;
      const result = await run(() => [
        counter.add(5).n,
        counter.next,
        counter instanceof Counter,
        Counter.make().n,
        Counter.made,
      ]);
      assert.deepEqual(result, [15, 16, true, 1, 9]);
      assert.equal(counter.n, 10);
    },
  ],
  [
    'inheritance, super and overriding',
    async (run) => {
      class Animal {
        constructor(readonly_: string) {
          this.name = readonly_;
        }
        name: string;
        speak() {
          return `${this.name} makes a sound`;
        }
        static create(name: string) {
          return new Animal(name);
        }
      }
      class Dog extends Animal {
        override speak() {
          return `${super.speak()}: woof`;
        }
        static override create(name: string) {
          return new Dog(`${super.create(name).name}!`);
        }
      }
      const result = await run(() => [
        Dog.create('Rex').speak(),
        Dog.create('a') instanceof Animal,
      ]);
      assert.deepEqual(result, ['Rex! makes a sound: woof', true]);
    },
  ],
  [
    'classes made by expressions: mixins, computed members, extends a call',
    async (run) => {
      type Constructor = new (...args: never[]) => object;
      const withName = <B extends Constructor>(Base: B) =>
        class extends (Base as Constructor) {
          named() {
            return 'mixed';
          }
        };
      class Mixed extends withName(Object) {
        [Symbol.toPrimitive]() {
          return 42;
        }
      }
      const mixed = new Mixed();
      const result = await run(() => [mixed.named(), Number(mixed), new Mixed().named()]);
      assert.deepEqual(result, ['mixed', 42, 'mixed']);
    },
  ],
  [
    'subclasses of built-in classes',
    async (run) => {
      class Registry extends Map<string, number> {
        label = 'r';
        total() {
          return [...this.values()].reduce((a, b) => a + b, 0);
        }
      }
      class Stack extends Array<number> {
        peek() {
          return this.at(-1);
        }
      }
      const registry = new Registry([
        ['a', 1],
        ['b', 2],
      ]);
      const stack = Stack.from([1, 2, 3]) as Stack;
      const result = await run(() => ({
        values: [registry.total(), registry.label, stack.peek(), stack.length],
        registry,
        isArray: Array.isArray(stack) && stack instanceof Stack,
      }));
      assert.deepEqual(result.values, [3, 'r', 3, 3]);
      assert.ok(result.registry instanceof Registry);
      assert.equal(result.registry.total(), 3);
      assert.equal(result.isArray, true);
    },
  ],
  [
    'old-style constructors',
    async (run) => {
      const Old = function (this: { n: number }, n: number) {
        this.n = n;
      } as unknown as { new (n: number): { n: number; twice(): number }; prototype: object };
      Object.assign(Old.prototype, {
        twice(this: { n: number }) {
          return this.n * 2;
        },
      });
      const old = new Old(4);
      const result = await run(() => ({ values: [old.twice(), new Old(5).twice()], old }));
      assert.deepEqual(result.values, [8, 10]);
      assert.ok(result.old instanceof Old);
    },
  ],
  [
    'a class expression that names itself',
    async (run) => {
      const Outer = class Inner {
        again() {
          return new Inner();
        }
      };
      assert.ok((await run(() => new Outer().again())) instanceof Outer);
    },
  ],
  [
    'an instance as result has the class of the caller',
    async (run) => {
      class Point {
        constructor(x: number) {
          this.x = x;
        }
        x: number;
      }
      const result = await run(() => ({ many: [new Point(1), new Point(2)] }));
      assert.ok(result.many.every((point) => point instanceof Point));
      assert.deepEqual(
        result.many.map(({ x }) => x),
        [1, 2],
      );
    },
  ],
  [
    'a class is one class over several calls',
    async (run) => {
      class Tagged {}
      const isTagged = (value: unknown) => value instanceof Tagged;
      const make = () => new Tagged();
      const made = await run(make);
      assert.ok(made instanceof Tagged);
      assert.equal(await run(isTagged, made), true);
      assert.equal(await run((value, Class) => value instanceof Class, made, Tagged), true);
    },
  ],
  [
    'private fields, when the instance is made there',
    async (run) => {
      class Secret {
        #value = 7;
        static #count = 1;
        reveal() {
          return this.#value + Secret.#count;
        }
      }
      assert.equal(await run(() => new Secret().reveal()), 8);
    },
  ],
  [
    'instances that say how they travel',
    async (run) => {
      class Secret {
        #value: number;
        constructor(value: number) {
          this.#value = value;
        }
        reveal() {
          return this.#value;
        }
        [Symbol.for('manycore.send')]() {
          return { value: this.#value };
        }
        static [Symbol.for('manycore.receive')](data: { value: number }) {
          return new Secret(data.value);
        }
      }
      const secret = new Secret(9);
      const result = await run((list) => [list[0]?.reveal(), secret.reveal(), list], [secret]);
      assert.deepEqual(result.slice(0, 2), [9, 9]);
      const back = result[2];
      assert.ok(Array.isArray(back) && back[0] instanceof Secret && back[0].reveal() === 9);
    },
  ],
  [
    'cycles and identity',
    async (run) => {
      const shared = { n: 1 };
      const a: { self?: unknown; list: object[] } = { list: [shared, shared] };
      a.self = a;
      const fn = () => a;
      const result = await run(() => {
        const list = a.list;
        return [a.self === a, list[0] === list[1], fn() === a, a];
      });
      assert.deepEqual(result.slice(0, 3), [true, true, true]);
      const back = result[3] as typeof a;
      assert.equal(back.self, back);
      assert.equal(back.list[0], back.list[1]);
    },
  ],
  [
    'Map, Set, Date, RegExp, BigInt, with functions and classes inside',
    async (run) => {
      class Key {}
      const key = new Key();
      const map = new Map<unknown, unknown>([
        ['fn', () => 1],
        [key, 'by key'],
      ]);
      const set = new Set<unknown>([key, 1n]);
      const date = new Date(0);
      const sticky = /a+/gy;
      sticky.lastIndex = 2;
      const result = await run(() => {
        const fn = map.get('fn');
        return [
          typeof fn === 'function' && fn(),
          map.get(key),
          set.has(key) && set.has(1n),
          date.getTime(),
          sticky.lastIndex,
          sticky.source + sticky.flags,
        ];
      });
      assert.deepEqual(result, [1, 'by key', true, 0, 2, 'a+gy']);
    },
  ],
  [
    'typed arrays, buffers and views of one buffer',
    async (run) => {
      const memory = new ArrayBuffer(16);
      const bytes = new Uint8Array(memory);
      const words = new Uint32Array(memory);
      const view = new DataView(memory, 4, 8);
      words[1] = 0x01020304;
      const part = Buffer.from('hello').subarray(1, 3);
      const result = await run(() => {
        bytes[4] = 9;
        return {
          shared: [words[1], view.getUint8(0), bytes.buffer === words.buffer],
          part,
          text: part.toString(),
          big: new BigInt64Array([1n, -1n]),
        };
      });
      assert.deepEqual(result.shared, [0x01020309, 9, true]);
      assert.ok(Buffer.isBuffer(result.part));
      assert.equal(result.text, 'el');
      assert.deepEqual(result.big, new BigInt64Array([1n, -1n]));
    },
  ],
  [
    '-0, NaN, undefined, holes, __proto__ as a key, extra properties of arrays',
    async (run) => {
      // biome-ignore lint/suspicious/noSparseArray: the point of the case
      const holes = [1, , 3];
      const tagged = Object.assign([1, 2], { tag: 't', fn: () => 5 });
      const odd = JSON.parse('{"__proto__": {"x": 1}, "b": 2}');
      const result = await run(
        (values) => ({ values, holes, isHole: !(1 in holes), tag: tagged.tag + tagged.fn(), odd }),
        [-0, Number.NaN, undefined, null],
      );
      assert.ok(Object.is(result.values[0], -0));
      assert.ok(Number.isNaN(result.values[1]));
      assert.ok(2 in result.values && result.values[2] === undefined);
      assert.ok(result.isHole && !(1 in result.holes) && result.holes.length === 3);
      assert.equal(result.tag, 't5');
      assert.deepEqual(Object.keys(result.odd), ['__proto__', 'b']);
      assert.equal(Object.getPrototypeOf(result.odd), Object.prototype);
    },
  ],
  [
    'typed arrays of classes of ones own, with their fields',
    async (run) => {
      class Samples extends Float64Array {
        rate = 44_100;
        scale(factor: number) {
          return factor * this.rate;
        }
      }
      const samples = new Samples([1, 2, 3]);
      const result = await run((extra) => {
        const { rate, length } = samples;
        return [rate, length, samples.scale(2), samples[2], samples instanceof Samples, extra];
      }, new Int16Array(1000));
      assert.deepEqual(result, [44_100, 3, 88_200, 3, true, new Int16Array(1000)]);
    },
  ],
  [
    'the `this` around an arrow function',
    async (run) => {
      class Service {
        factor = 3;
        async scale(n: number) {
          return await run(() => this.factor * n);
        }
      }
      assert.equal(await new Service().scale(5), 15);
    },
  ],
  [
    'the `arguments` around an arrow function',
    async (run) => {
      function outer(..._: number[]) {
        // biome-ignore lint/complexity/noArguments: the point of the case
        return run(() => arguments[1] + arguments.length);
      }
      assert.equal(await outer(1, 20, 3), 23);
    },
  ],
  [
    'a function that is only known at run time',
    async (run) => {
      const apply = (fn: (n: number) => number) => run(() => fn(3));
      assert.equal(await apply((n) => n * n), 9);
      assert.equal(await apply(factorial), 6);
    },
  ],
  [
    'errors as values: cause, code, own properties',
    async (run) => {
      const error = Object.assign(new TypeError('bad', { cause: new Error('root') }), {
        code: 'E_BAD',
        details: { fn: () => 4 },
      });
      const result = await run(() => [
        error instanceof TypeError,
        error.code,
        error.cause instanceof Error && error.cause.message,
        error.details.fn(),
        Object.keys(error),
        error,
      ]);
      assert.deepEqual(result.slice(0, 5), [true, 'E_BAD', 'root', 4, ['code', 'details']]);
      const back = result[5];
      assert.ok(back instanceof TypeError && back.stack?.startsWith('TypeError: bad'));
    },
  ],
  [
    'a thrown error of a class of the caller',
    async (run) => {
      class HttpError extends Error {
        override name = 'HttpError';
        status: number;
        constructor(status: number) {
          super(`status ${status}`);
          this.status = status;
        }
      }
      await assert.rejects(
        run(() => {
          throw new HttpError(404);
        }),
        (error) =>
          error instanceof HttpError && error.status === 404 && error.message === 'status 404',
      );
    },
  ],
  [
    'a thrown AggregateError, and thrown things that are no errors',
    async (run) => {
      await assert.rejects(
        run(() => Promise.any([Promise.reject(new RangeError('one')), Promise.reject('two')])),
        (error) =>
          error instanceof AggregateError &&
          error.errors[0] instanceof RangeError &&
          error.errors[1] === 'two',
      );
      await assert.rejects(
        run(() => {
          throw { odd: true };
        }),
        { odd: true },
      );
      const thrown = await run(() => {
        throw undefined;
      }).catch((error: unknown) => [error]);
      assert.deepEqual(thrown, [undefined]);
    },
  ],
  [
    'a closure as result',
    async (run) => {
      const add = await run((a: number) => (b: number) => a + b + topConstant, 1);
      assert.equal(add(2), 13);
      assert.equal(await run(() => add(3)), 14);
    },
  ],
  [
    'a function that goes there and back is the same function',
    async (run) => {
      const fn = (n: number) => n + topConstant;
      let changing = 1;
      const other = () => changing;
      changing = 2;
      const result = await run((first) => ({ first, other }), fn);
      assert.equal(result.first, fn);
      assert.equal(result.other, other);
    },
  ],
  [
    'a function made there that comes back to its peer is the same function',
    async (run) => {
      const made = await run(() => {
        const own = () => 1;
        Reflect.set(globalThis, 'madeThere', own);
        return own;
      });
      assert.equal(await run((fn) => fn === Reflect.get(globalThis, 'madeThere'), made), true);
    },
  ],
  [
    'the same function twice in one call is one function',
    async (run) => {
      const fn = () => 1;
      assert.equal(await run((list) => list[0] === list[1] && list[0] === fn, [fn, fn]), true);
    },
  ],
  [
    'URL objects',
    async (run) => {
      const url = new URL('https://example.org/a?b=1');
      const result = await run(() => [url.searchParams.get('b'), url]);
      assert.equal(result[0], '1');
      assert.ok(result[1] instanceof URL && result[1].href === url.href);
    },
  ],
  [
    'a captured name that looks like ours',
    async (run) => {
      const _manycore = 1;
      const impor_ = 2;
      const values = [3];
      assert.deepEqual(
        await run(async () => [
          _manycore,
          impor_,
          values[0],
          typeof (await import('node:os')).cpus,
        ]),
        [1, 2, 3, 'function'],
      );
    },
  ],
  [
    'thousands of nodes with classes and functions',
    async (run) => {
      class Node {
        children: Node[] = [];
        depth: number;
        constructor(depth: number) {
          this.depth = depth;
          if (depth > 0) this.children.push(new Node(depth - 1), new Node(depth - 1));
        }
        count(): number {
          return 1 + this.children.reduce((sum, child) => sum + child.count(), 0);
        }
      }
      const tree = new Node(10);
      assert.equal(await run(() => tree.count()), 2047);
    },
  ],
];
