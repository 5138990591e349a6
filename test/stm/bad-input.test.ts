// Values that no variable can hold, and effects that no transaction may have: each is one clear sentence with a code,
// without an effect, in every place that takes a value. No code of the value runs.
// Long (over 400 lines): two tables of everything that can be given.
// Not here: paths in values (values.test.ts), a memory that is full (full.test.ts), the limit of threads
// (crowded.test.ts), an owner that is stopped (test/death/stm.slow.test.ts).

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runInNewContext } from 'node:vm';
import { type ErrorCode, hasCode } from '../../src/errors.js';
import { bus, Pool, pmap } from '../../src/public.js';
import {
  atomically,
  atomicallyWhen,
  free,
  named,
  nested,
  orElse,
  stmStats,
  type TVar,
  tlist,
  tmap,
  tqueue,
  tsortedMap,
  tvar,
} from '../../src/stm/public.js';
import { programFolder, runNode } from '../pool/programs.js';

/** Throws when code of a value runs, which must not. */
function trap(): never {
  throw new Error('code of the value has run');
}

const traps = new Proxy({}, { get: () => trap });
const anyTrap: object = new Proxy({}, traps);

class Account {
  readonly balance = 1;
  toJSON(): object {
    return trap();
  }
}

class Stack extends Array<number> {}
class Bytes extends Uint8Array {}

function nestedBy(levels: number, inner: unknown = 1): unknown {
  let value = inner;
  for (let level = 0; level < levels; level += 1) value = level % 2 === 0 ? [value] : { a: value };
  return value;
}

function cycleOf(name: string): object {
  const cycle: Record<string, unknown> = {};
  cycle[name] = { back: [cycle] };
  return cycle;
}

function withAccessor(key: PropertyKey, isEnumerable = true): object {
  return Object.defineProperty({}, key, { get: trap, enumerable: isEnumerable });
}

function arrayWith(change: (array: unknown[]) => void): unknown[] {
  const array: unknown[] = [1, 2, 3];
  change(array);
  return array;
}

/** By name: what no variable holds. */
const unstorable: Readonly<Record<string, unknown>> = {
  'a function': () => trap(),
  'an async function': async () => trap(),
  'a class': Account,
  'a symbol': Symbol('a'),
  'a symbol of the registry': Symbol.for('a'),
  'a class instance with toJSON': new Account(),
  'a plain object with toJSON': { toJSON: trap },
  'a date': new Date(0),
  'an invalid date': new Date(Number.NaN),
  'a regular expression': /a/,
  'an error': new Error('a'),
  'a map': new Map([[1, 2]]),
  'a set': new Set([1]),
  'a weak map': new WeakMap(),
  'a weak reference': new WeakRef({}),
  'a promise': Promise.resolve(1),
  'a URL': new URL('http://localhost/'),
  'a generator': (function* () {
    yield 1;
  })(),
  'a boxed text': Object('text'),
  'a boxed number': Object(1),
  'a boxed bigint': Object(1n),
  'a boxed symbol': Object(Symbol('a')),
  'an array buffer': new ArrayBuffer(8),
  'a shared array buffer': new SharedArrayBuffer(8),
  'a data view': new DataView(new ArrayBuffer(8)),
  'an Int8Array': new Int8Array(3),
  'a Uint8ClampedArray': new Uint8ClampedArray(3),
  'a BigInt64Array at an offset': new BigInt64Array(new ArrayBuffer(32), 8, 2),
  'the arguments of a function': (function (..._args: number[]) {
    // biome-ignore lint/complexity/noArguments: they are what the test is about
    return arguments;
  })(1, 2),
  Math: Math,
  globalThis: globalThis,
  'a proxy of an object': new Proxy({}, {}),
  'a proxy of an array': new Proxy([], {}),
  'a proxy with traps': anyTrap,
  'a proxy that was revoked': (() => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    return proxy;
  })(),
  'a proxy of a variable': new Proxy(tvar(1), {}),
  'an object whose prototype is a proxy': Object.create(anyTrap),
  'an object whose prototype has a prototype that is a proxy': Object.create(
    Object.create(anyTrap),
  ),
  'an object with a prototype of its own': Object.create({ inherited: 1 }),
  'an object that inherits from one without a prototype': Object.create(
    Object.assign(Object.create(null), { inherited: 1 }),
  ),
  'an object that inherits a constructor that throws': Object.create(withAccessor('constructor')),
  'an object that pretends to be bytes': Object.create(Uint8Array.prototype),
  'an object that pretends to be an array': Object.create(Array.prototype),
  'an array of a class': Stack.of(1, 2),
  'an accessor': withAccessor('a'),
  'a hidden accessor': withAccessor('a', false),
  'an accessor by a symbol': withAccessor(Symbol('a')),
  'a hidden property': Object.defineProperty({}, 'a', { value: 1 }),
  'a symbol as a key': { [Symbol('a')]: 1 },
  'a symbol of the language as a key': { [Symbol.iterator]: trap },
  'an array with a hole': arrayWith((array) => delete array[1]),
  'an array with holes at its end': arrayWith((array) => {
    array.length = 5;
  }),
  'an array with a hole and a name': arrayWith(
    (array) => Object.assign(array, { name: 1 }) && delete array[1],
  ),
  'an array with a name': arrayWith((array) => Object.assign(array, { name: 1 })),
  'an array with a symbol': arrayWith((array) => Object.assign(array, { [Symbol('a')]: 1 })),
  'an array with an accessor': arrayWith((array) =>
    Object.defineProperty(array, 1, { get: trap, enumerable: true }),
  ),
  'an empty array of a billion': new Array(1e9),
  'a cycle': cycleOf('a'),
  'a cycle of long names': cycleOf('long '.repeat(50)),
  'a cycle of an array': arrayWith((array) => array.push(array)),
  'a nesting of 258 levels': nestedBy(258),
  'a nesting of 100,000 levels': nestedBy(100_000),
  'a function under a name of 60,000 characters': { ['x'.repeat(60_000)]: trap },
  'a function under a name of several lines': { 'a\nb\r\nc\u2028d': trap },
  'a function deep inside': { a: [{ b: [{ c: trap }] }] },
};

/** By name: what is storable, and larger than 64 KiB. */
const tooLarge: Readonly<Record<string, unknown>> = {
  'a long text': 'x'.repeat(65_532),
  'a very long text': 'x'.repeat(100_000_000),
  'a text of wide characters': '€'.repeat(32_766),
  'a text of lone surrogates': '\ud800'.repeat(32_766),
  'a bigint of 300,000 bits': 1n << 300_000n,
  'a negative bigint of 300,000 bits': -(1n << 300_000n),
  bytes: new Uint8Array(65_532),
  'a view of bytes at an offset': new Uint8Array(new ArrayBuffer(70_000), 3, 65_600),
  'an array of many': Array.from({ length: 66_000 }, () => null),
  'an object of many': Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [at, at])),
  'a long name': { ['x'.repeat(66_000)]: 1 },
  'many variables': Array.from({ length: 8000 }, () => tvar(1)),
};

/** Places that take a value, on things whose content is 'before'. */
const places: Readonly<
  Record<string, (value: unknown) => readonly [act: () => unknown, seen: () => unknown]>
> = {
  tvar: (value) => [() => tvar(value), () => 'before'],
  set: (value) => {
    const variable = tvar<unknown>('before');
    return [() => atomically(() => variable.set(value)), () => variable.peek()];
  },
  'set in a part that is caught': (value) => {
    const variable = tvar<unknown>('before');
    const part = () => {
      variable.set('part');
      variable.set(value);
    };
    const whole = () => {
      let failure: unknown;
      atomically(() => {
        try {
          nested(part);
        } catch (error) {
          failure = error;
        }
      });
      throw failure;
    };
    return [whole, () => variable.peek()];
  },
  update: (value) => {
    const variable = tvar<unknown>('before');
    return [() => atomically(() => variable.update(() => value)), () => variable.peek()];
  },
  'map.set': (value) => {
    const map = tmap<string, unknown>();
    map.set('a', 'before');
    return [() => map.set('a', value), () => map.get('a')];
  },
  'map.set of a new key': (value) => {
    const map = tsortedMap<string, unknown>();
    map.set('a', 'before');
    return [
      () => map.set('b', value),
      () => map.entries().map(([key, each]) => key === 'a' && each)[map.size - 1],
    ];
  },
  'queue.put': (value) => {
    const queue = tqueue<unknown>();
    queue.put('before');
    return [() => queue.put(value), () => (queue.size === 1 ? queue.peek() : 'more')];
  },
};

/** One sentence of a length that fits a terminal. */
function assertIsSentence({ message }: Error): void {
  assert.doesNotMatch(message, /[\n\r\u2028\u2029]/);
  assert.ok(message.length < 400, `${message.length} characters: ${message.slice(0, 200)}`);
  assert.match(message, /^(the |a )?value.*: .+/);
}

function assertRefused(name: string, value: unknown, code: ErrorCode): void {
  for (const [place, make] of Object.entries(places)) {
    const [act, seen] = make(value);
    for (const call of [act, () => atomically(act)]) {
      assert.throws(
        call,
        (error) => {
          assert.ok(hasCode(error, code), `${name} in ${place}: ${String(error).slice(0, 500)}`);
          assertIsSentence(error);
          return true;
        },
        `${name} in ${place}`,
      );
      assert.equal(seen(), 'before', `${name} in ${place}`);
    }
  }
}

for (const [name, value] of Object.entries(unstorable)) {
  test(`${name} is refused, alone and inside`, () => {
    assertRefused(name, value, 'STM_VALUE');
    assertRefused(name, { inside: [value] }, 'STM_VALUE');
  });
}

for (const [name, value] of Object.entries(tooLarge)) {
  test(`${name} is too large, alone and inside`, () => {
    assertRefused(name, value, 'STM_VALUE_TOO_LARGE');
    assertRefused(name, [0, { inside: value }], 'STM_VALUE_TOO_LARGE');
  });
}

test('unusual values that can be held come out as they went in', () => {
  const buffer = new Uint8Array([0, 1, 2, 3, 4, 5]).buffer;
  const held: readonly (readonly [given: unknown, wanted: unknown])[] = [
    [Number.NaN, Number.NaN],
    [
      [-0, Number.NaN, -Infinity],
      [-0, Number.NaN, -Infinity],
    ],
    ['\udc00\ud800', '\udc00\ud800'],
    ['x'.repeat(65_400), 'x'.repeat(65_400)],
    ['€'.repeat(32_700), '€'.repeat(32_700)],
    [2n ** 64n, 2n ** 64n],
    [
      [-(2n ** 63n) - 1n, 2n ** 5000n],
      [-(2n ** 63n) - 1n, 2n ** 5000n],
    ],
    [new Uint8Array(buffer, 2, 3), new Uint8Array([2, 3, 4])],
    [Buffer.from('text'), new Uint8Array(Buffer.from('text'))],
    [new Bytes([1, 2]), new Uint8Array([1, 2])],
    [new Uint8Array(0), new Uint8Array(0)],
    [
      runInNewContext('({ list: [1, { a: 2 }], bytes: new Uint8Array([7]) })'),
      { list: [1, { a: 2 }], bytes: new Uint8Array([7]) },
    ],
    [
      { '': 1, toString: 2, ['__proto__']: 3 },
      { '': 1, toString: 2, ['__proto__']: 3 },
    ],
    [
      Object.assign(Object.create(null), { a: Object.create(null) }),
      Object.assign(Object.create(null), { a: Object.create(null) }),
    ],
    [Object.freeze([Object.freeze({ a: 1 })]), [{ a: 1 }]],
    [nestedBy(250), nestedBy(250)],
  ];
  for (const [given, wanted] of held) {
    const [variable, map, queue] = [tvar<unknown>(0), tmap<number, unknown>(), tqueue<unknown>()];
    atomically(() => variable.set(given));
    map.set(1, given);
    queue.put(given);
    for (const found of [variable.peek(), tvar(given).peek(), map.get(1), queue.take()]) {
      assert.deepStrictEqual(found, wanted);
    }
  }
});

test('bytes with properties of their own are taken as bytes, and no code of them runs', () => {
  const bytes = new Uint8Array([1, 2, 3]);
  for (const name of ['length', 'byteLength', 'buffer', 'constructor', 'subarray']) {
    Object.defineProperty(bytes, name, { get: trap });
  }
  assert.deepStrictEqual(tvar(bytes).peek(), new Uint8Array([1, 2, 3]));
  const long = Object.defineProperty(new Uint8Array([1, 2, 3]), 'length', { value: 1e9 });
  assert.deepStrictEqual(tvar([long]).peek(), [new Uint8Array([1, 2, 3])]);
});

test('variables inside of values inside of variables are the same ones, also where they have ended', () => {
  const inner = tvar('inner');
  const middle = tvar({ list: [inner], bare: Object.assign(Object.create(null), { inner }) });
  const outer = tvar<readonly TVar<unknown>[]>([middle, inner]);
  const own = tvar<unknown>(null);
  atomically(() => own.set({ own: [own] })); // leads to itself, which is no cycle of values
  assert.equal(Object(own.peek()).own[0], own);
  free(inner);
  const holders = [
    outer.peek()[1],
    middle.peek().list[0],
    middle.peek().bare.inner,
    tvar([inner]).peek()[0],
    atomically(() => tvar({ inner }).get().inner),
  ];
  for (const each of holders) {
    assert.ok(each);
    assert.throws(() => each.peek(), { code: 'STM_GONE' });
    assert.throws(() => atomically(() => each.set('again')), { code: 'STM_GONE' });
  }
  assert.equal(outer.peek()[0], middle);
});

const keys: readonly (readonly [key: unknown, code: ErrorCode])[] = [
  [Number.NaN, 'STM_VALUE'],
  [undefined, 'STM_VALUE'],
  [null, 'STM_VALUE'],
  [true, 'STM_VALUE'],
  [1n, 'STM_VALUE'],
  [Symbol('a'), 'STM_VALUE'],
  [{ toString: trap }, 'STM_VALUE'],
  [['a'], 'STM_VALUE'],
  [Object('a'), 'STM_VALUE'],
  [anyTrap, 'STM_VALUE'],
  [() => trap(), 'STM_VALUE'],
  ['x'.repeat(100_000), 'STM_VALUE_TOO_LARGE'],
  ['€'.repeat(600), 'STM_VALUE_TOO_LARGE'],
];

test('what is no key is refused in each method of a collection', () => {
  const [map, sorted, list] = [tmap(), tsortedMap(), tlist()];
  map.set('a', 1);
  sorted.set('a', 1);
  list.add('a');
  const methods: readonly (readonly [target: object, names: readonly string[]])[] = [
    [map, ['get', 'has', 'set', 'delete']],
    [sorted, ['get', 'has', 'set', 'delete']],
    [list, ['has', 'add', 'delete']],
  ];
  for (const [key, code] of keys) {
    for (const [target, names] of methods) {
      for (const name of names) {
        const call = () => Reflect.apply(Reflect.get(target, name), target, [key, 2]);
        assert.throws(call, (error) => {
          assert.ok(hasCode(error, code), `${name}: ${String(error)}`);
          assert.doesNotMatch(error.message, /\n/);
          assert.ok(error.message.length < 400, error.message.slice(0, 300));
          return true;
        });
      }
    }
  }
  assert.deepEqual([map.entries(), sorted.entries(), list.keys()], [[['a', 1]], [['a', 1]], ['a']]);
});

test('bodies that are asynchronous are refused in each place, and have no effect', async () => {
  const variable = tvar(0);
  // biome-ignore lint/suspicious/noThenProperty: a thenable is what the test is about
  const thenable = { then: () => trap() };
  const bodies: readonly (() => unknown)[] = [
    async () => variable.set(1),
    () => {
      variable.set(1);
      return Promise.resolve();
    },
    () => {
      variable.set(1);
      return thenable;
    },
    () => {
      variable.set(1);
      return Object.create(thenable);
    },
    // Goes on after the refusal, and fails there: nobody is to hear of that.
    async () => {
      variable.set(1);
      await null;
      variable.set(2);
    },
    async () => {
      await null;
      throw new Error('after the refusal');
    },
    function* () {
      yield variable.get();
    },
  ];
  for (const body of bodies) {
    for (const call of [atomically, nested, orElse]) {
      assert.throws(() => Reflect.apply(call, undefined, [body]), { code: 'STM_ASYNC' });
    }
    await assert.rejects(atomicallyWhen(body), { code: 'STM_ASYNC' });
    assert.equal(variable.peek(), 0);
  }
});

test('effects of this package are refused in a transaction, which has no effect then', async (t) => {
  const pool = new Pool({ size: 1 });
  t.after(() => pool.destroy());
  const variable = tvar(0);
  const effects: Readonly<Record<string, () => unknown>> = {
    pmap: () => pmap([1], trap, { pool }),
    'pmap.filter': () => pmap.filter([1], trap, { pool }),
    'pool.run': () => pool.run(trap),
    'pool.with': () => pool.with({ timeoutMs: 1 }).run(trap),
    'pool.runOnEach': () => pool.runOnEach(trap),
    'bus.publish': () => bus.publish('stm.effect', 1),
    'bus.send': () => bus.send('stm.effect', 1),
    'bus.request': () => bus.request('stm.effect', 1),
    'bus.consumer': () => bus.consumer('stm.effect', trap),
    atomicallyWhen: () => atomicallyWhen(trap),
    named: () => named('stm.effect', trap),
  };
  for (const [name, effect] of Object.entries(effects)) {
    let result: unknown;
    const isRefused = (error: unknown) => {
      assert.ok(hasCode(error, 'STM_SIDE_EFFECT'), `${name}: ${error}`);
      assert.match(error.message, /^[^\n]+ was called in a transaction[,:] [^\n]+$/);
      return true;
    };
    const body = () => {
      variable.set(1);
      result = effect();
      if (!(result instanceof Promise)) throw new Error(`${name} has returned ${String(result)}`);
    };
    try {
      atomically(body);
      await assert.rejects(Promise.resolve(result), isRefused, name);
      atomically(() => variable.set(0)); // a promise that rejects arrives behind the commit
    } catch (error) {
      isRefused(error);
    }
    assert.equal(variable.peek(), 0, name);
  }
});

test('calls of the pool of the program are refused, too', async (t) => {
  // In a program of its own, whose pool ends with it.
  const folder = programFolder(t, {
    'main.mjs': `
      import assert from 'node:assert/strict';
      import { parallel, run } from 'manycore';
      import { atomically, tvar } from 'manycore/stm';
      const variable = tvar(0);
      for (const call of [run, (fn) => parallel(fn)()]) {
        const refused = async () => {
          let result;
          atomically(() => { variable.set(2); result = call(() => 1); });
          await result;
        };
        await assert.rejects(refused, { code: 'STM_SIDE_EFFECT' });
      }
      assert.equal(await run(() => 2), 2);`,
  });
  const { stderr, exitCode } = await runNode(folder, ['main.mjs']);
  assert.equal(exitCode, 0, stderr);
});

test('a transaction that makes too many variables is refused, and their memory is used again', () => {
  const witness = tvar(0);
  const makeMany = () =>
    atomically(() => {
      witness.set(1);
      for (let count = 0; count < 70_000; count += 1) tvar(count);
    });
  assert.throws(makeMany, { code: 'STM_TOO_LARGE' });
  const { memoryBytes } = stmStats();
  for (let round = 0; round < 5; round += 1) {
    assert.throws(makeMany, (error) => {
      assert.ok(hasCode(error, 'STM_TOO_LARGE'));
      assert.match(error.message, /^a transaction [^\n]+: divide it$/);
      return true;
    });
  }
  assert.equal(witness.peek(), 0);
  assert.equal(stmStats().memoryBytes, memoryBytes);
});
