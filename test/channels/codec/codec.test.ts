// The fast half of the codec: the values that it carries, and those that it leaves to the slow half.
// Long (over 400 lines), because most of it are two tables of values.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { ByteReader, ByteWriter, Codec, isImmutable } from '../../../src/channels/index.js';
import { waitFor } from '../../support/index.js';
import { listCodec, plainCodec, roundTrip, written } from './given.js';

const plainValues: Record<string, unknown> = {
  undefined,
  null: null,
  true: true,
  false: false,
  zero: 0,
  'minus zero': -0,
  'least int32': -(2 ** 31),
  'largest int32': 2 ** 31 - 1,
  'past int32': 2 ** 31,
  fraction: 1.5,
  NaN: Number.NaN,
  infinity: Number.NEGATIVE_INFINITY,
  'least float': Number.MIN_VALUE,
  'bigint 0': 0n,
  'least bigint of 64 bits': -(2n ** 63n),
  'bigint of 65 bits': 2n ** 63n,
  'a large negative bigint': -(3n ** 300n),
  'empty string': '',
  'ASCII text': 'hello',
  'text of 21 ASCII characters': 'abcdefghijklmnopqrstu',
  'long ASCII text': 'x'.repeat(100_000),
  'Latin text': 'déjà vu',
  'two Latin characters': 'éa'.repeat(30),
  'long Latin text': 'ÿ'.repeat(1000),
  'wide text': '漢字🎉',
  'long text, wide at its end': `${'a'.repeat(1000)}漢`,
  'lone surrogates': 'a\ud800b\udc00',
  'many lone surrogates': '\ud800'.repeat(60),
  'NUL characters': '\0\0',
  'empty array': [],
  'nested arrays': [[[]], [1, [2]]],
  'an array with undefined': [undefined, null],
  'empty object': {},
  'an object': { a: 1, b: 'two', c: { d: [3] } },
  'number-like keys': { 1: 'a', '-1': 'b', '01': 'c', 4294967295: 'd' },
  'unusual keys': { '': 1, '\0': 2, é: 3, 漢: 4, [`${'k'.repeat(300)}`]: 5, 'a"b\\': 6 },
  'a wide key that is long': { ['漢'.repeat(200)]: 1 },
  'an object without prototype': Object.assign(Object.create(null), { a: 1, __proto__: 2 }),
  'a buffer': Buffer.from('bytes'),
  'an empty buffer': Buffer.alloc(0),
  'a large buffer': Buffer.alloc(100_000, 'ab'),
  Uint8Array: new Uint8Array([1, 2, 3]),
  Uint8ClampedArray: new Uint8ClampedArray([255, 0]),
  Int8Array: new Int8Array([-1]),
  Int16Array: new Int16Array([-300, 300]),
  Uint16Array: new Uint16Array([65535]),
  Int32Array: new Int32Array([-70000]),
  Uint32Array: new Uint32Array([2 ** 32 - 1]),
  Float32Array: new Float32Array([0.5, Number.NaN]),
  Float64Array: new Float64Array([Math.PI, -0]),
  BigInt64Array: new BigInt64Array([-1n]),
  BigUint64Array: new BigUint64Array([2n ** 64n - 1n]),
  DataView: new DataView(new ArrayBuffer(8), 2, 4),
  ArrayBuffer: new Uint8Array([9, 8, 7]).buffer,
  'an empty ArrayBuffer': new ArrayBuffer(0),
  'part of a buffer': new Uint8Array([0, 1, 2, 3, 4]).subarray(1, 3),
};

for (const [title, value] of Object.entries(plainValues)) {
  test(`${title} arrives as it was sent, with its prototype`, () => {
    const arrived = roundTrip(value);
    assert.deepStrictEqual(arrived, value);
  });
}

test('Float16Array arrives where the platform has it', (t) => {
  const constructor: unknown = Reflect.get(globalThis, 'Float16Array');
  if (typeof constructor !== 'function') {
    t.diagnostic('this Node has no Float16Array: nothing to send');
    return;
  }
  const value: unknown = Reflect.construct(constructor, [[0.5, 2]]);
  assert.deepStrictEqual(roundTrip(value), value);
});

test('an own key __proto__ arrives as a key, and changes no prototype', () => {
  const value: unknown = JSON.parse('{"__proto__": {"polluted": 1}, "a": 2}');
  // Enough rounds for the code that is made for a shape.
  for (let time = 0; time < 100; time += 1) {
    const arrived = roundTrip(value);
    assert.ok(typeof arrived === 'object' && arrived !== null);
    assert.deepEqual(Object.keys(arrived), ['__proto__', 'a']);
    assert.equal(Object.getPrototypeOf(arrived), Object.prototype);
    assert.equal(Reflect.get(arrived, 'polluted'), undefined);
  }
});

test('an object with thousands of keys arrives, a key __proto__ among them', () => {
  const value: unknown = JSON.parse(
    `{${Array.from({ length: 5000 }, (_, index) => `"key ${index}": ${index}`).join()}, "__proto__": 1}`,
  );
  assert.deepStrictEqual(roundTrip(value), value);
});

test('keys that look like code are keys in the code that is made for a shape', () => {
  const key = '"]: process.exit(1), ["\u2028`';
  for (let time = 0; time < 100; time += 1) {
    assert.deepStrictEqual(roundTrip({ [key]: time, b: 1 }), { [key]: time, b: 1 });
  }
});

test('objects of one shape arrive as separate objects', () => {
  const arrived = roundTrip(Array.from({ length: 200 }, (_, index) => ({ index, list: [index] })));
  assert.ok(Array.isArray(arrived));
  assert.equal(new Set(arrived).size, 200);
  assert.deepEqual(arrived[150], { index: 150, list: [150] });
});

test('an integer is written as an integer, and minus zero is not', () => {
  assert.equal(written(5).byteLength, 5);
  assert.equal(written(-0).byteLength, 9);
});

test('a received value shares no memory with the sent one', () => {
  const sent = new Uint8Array(100_000);
  const arrived = roundTrip(sent);
  assert.ok(arrived instanceof Uint8Array);
  arrived[0] = 1;
  assert.equal(sent[0], 0);
});

class Point {
  x = 1;
}
class MyArray extends Array<number> {}
class MyBytes extends Uint8Array {}
const cycle: Record<string, unknown> = {};
cycle['self'] = cycle;
const twin = {};
const memory = new ArrayBuffer(80);
const resizable: unknown = Reflect.construct(ArrayBuffer, [8, { maxByteLength: 16 }]);

const otherValues: Record<string, unknown> = {
  'a function': () => 1,
  'a symbol': Symbol('s'),
  'an instance': new Point(),
  'a Map': new Map(),
  'a Date': new Date(),
  'a RegExp': /x/,
  'an Error': new Error('e'),
  'a Promise': Promise.resolve(),
  'a boxed number': Object(1),
  'an array subclass': MyArray.of(1),
  'a byte array subclass': new MyBytes(1),
  'an array with a hole': Object.assign(new Array(3), { 0: 1, 2: 2 }),
  'the result of a match': /b/.exec('abc'),
  'the strings of a template': ((strings: TemplateStringsArray) => strings)`a`,
  'a cycle': cycle,
  'the same object twice': [twin, twin],
  'the same object twice, far apart': [twin, ...Array.from({ length: 100 }, () => ({})), twin],
  'an object twice behind many others': Array.from({ length: 100 }, () => ({}))
    .concat(twin)
    .concat(twin),
  'two views of one buffer': [new Uint8Array(memory), new Uint16Array(memory)],
  'a buffer and a view of it': [memory, new Uint8Array(memory)],
  'shared memory': new SharedArrayBuffer(8),
  'a view of shared memory': new Uint8Array(new SharedArrayBuffer(200)),
  'a small view of shared memory': new Uint8Array(new SharedArrayBuffer(8)),
  'a view of shared memory that is no byte array': new Int32Array(new SharedArrayBuffer(8)),
  'a resizable buffer': resizable,
  'Math, which has no keys to see': Math,
  'an object with a symbol alone': { [Symbol('s')]: 1 },
  'an object with a hidden key alone': Object.defineProperty({}, 'hidden', { value: 1 }),
  'an object of another realm': runInNewContext('({})'),
  'an object that claims to be bytes': Object.create(Uint8Array.prototype),
  'an object that claims to be an array': Object.create(Array.prototype),
};

for (const [title, value] of Object.entries(otherValues)) {
  test(`${title} is left to the slow codec, also deep inside`, () => {
    const writer = ByteWriter.growing(16);
    writer.u8(42);
    assert.equal(plainCodec.tryWrite(writer, value), false);
    assert.equal(plainCodec.tryWrite(writer, { a: ['text', { b: value }] }), false);
    assert.equal(writer.position, 1, 'the writer is where it was');
    assert.equal(writer.bytes[0], 42);
  });
}

test('a resizable view is left to the slow codec', () => {
  assert.ok(resizable instanceof ArrayBuffer);
  assert.equal(plainCodec.tryWrite(ByteWriter.growing(), new Uint8Array(resizable)), false);
  assert.equal(plainCodec.tryWrite(ByteWriter.growing(), new Int16Array(resizable)), false);
});

test('nesting past the limit is left to the slow codec, and the limit itself arrives', () => {
  const nested = (levels: number): unknown => {
    let value: unknown = 1;
    for (let level = 0; level < levels; level += 1) value = level % 2 ? [value] : { value };
    return value;
  };
  assert.deepStrictEqual(roundTrip(nested(256)), nested(256));
  assert.equal(plainCodec.tryWrite(ByteWriter.growing(), nested(257)), false);
  assert.equal(plainCodec.tryWrite(ByteWriter.growing(), nested(200_000)), false);
});

test('an enumerable property on Object.prototype sends objects the slow way, and only them', (t) => {
  Object.defineProperty(Object.prototype, 'leak', {
    value: 1,
    enumerable: true,
    configurable: true,
  });
  t.after(() => Reflect.deleteProperty(Object.prototype, 'leak'));
  assert.equal(plainCodec.tryWrite(ByteWriter.growing(), { a: 1 }), false);
  assert.equal(plainCodec.tryWrite(ByteWriter.growing(), [1, 'text', [null]]), true);
});

const called = (): never => assert.fail("no code of the user's runs");

const special: Record<string, () => unknown> = {
  'an object with a getter': () => ({
    get a() {
      return called();
    },
  }),
  'an object with a setter': () => ({
    set a(_value: number) {
      called();
    },
  }),
  'a frozen object': () => Object.freeze({ a: 1 }),
  'a sealed object': () => Object.seal({ a: 1 }),
  'an object that cannot be extended': () => Object.preventExtensions({ a: 1 }),
  'an object with a symbol beside a name': () => ({ a: 1, [Symbol.for('s')]: 2 }),
  'an object with a hidden property': () => Object.defineProperty({ a: 1 }, 'b', { value: 2 }),
  'an object with a property that cannot be written': () =>
    Object.defineProperty({}, 'a', { value: 1, enumerable: true, configurable: true }),
  'an object with a property that cannot be deleted': () =>
    Object.defineProperty({}, 'a', { value: 1, enumerable: true, writable: true }),
  'an array with a name': () => Object.assign([1], { columns: ['a'] }),
  'an array with a symbol': () => Object.assign([1], { [Symbol.for('s')]: 1 }),
  'an array with as many holes as names': () => Object.assign(new Array(2), { 0: 1, foo: 'bar' }),
  'a frozen array': () => Object.freeze([1]),
  'an array whose length cannot change': () =>
    Object.defineProperty([1, 2], 'length', { writable: false }),
  'an array with a getter for an element': () =>
    Object.defineProperty([1, 2], 1, { get: called, enumerable: true, configurable: true }),
  'a long array with a getter for an element': () =>
    Object.defineProperty(new Array(5000).fill(1), 7, { get: called, enumerable: true }),
  'bytes with a name': () => Object.assign(new Uint8Array(2), { tag: 1 }),
  'many bytes with a name': () => Object.assign(new Uint8Array(5000), { tag: 1 }),
  'a Buffer with a name': () => Object.assign(Buffer.from('ab'), { tag: 1 }),
  'memory with a name': () => Object.assign(new ArrayBuffer(8), { tag: 1 }),
  'detached memory': () => {
    const memory = new ArrayBuffer(8);
    structuredClone(memory, { transfer: [memory] });
    return memory;
  },
  'the arguments of a function': () =>
    (function (this: unknown, ..._given: number[]) {
      // biome-ignore lint/complexity/noArguments: the object itself is wanted
      return arguments;
    })(1, 2),
  'a Proxy': () => new Proxy({ a: 1 }, { get: called, ownKeys: called, getPrototypeOf: called }),
  'a Proxy of an array': () => new Proxy([1], { get: called, getPrototypeOf: called }),
  'a revoked Proxy': () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    return proxy;
  },
  'a Map that looks like an object': () => Object.setPrototypeOf(new Map(), Object.prototype),
  'two Buffers over the same bytes': () => {
    const whole = Buffer.from('whole');
    return [whole, whole.subarray(1, 3)];
  },
  'a Buffer and its memory': () => {
    const memory = new ArrayBuffer(8);
    return [Buffer.from(memory), memory];
  },
};

for (const [title, make] of Object.entries(special)) {
  test(`${title} is left to the slow codec, also after others of the same keys`, () => {
    for (const plain of [{ a: 1 }, { a: 1, b: 2 }, {}, [1], [1, 2]]) {
      for (let time = 0; time < 3; time += 1) written({ value: plain });
    }
    for (let time = 0; time < 3; time += 1) {
      const value = make();
      const writer = ByteWriter.growing(16);
      assert.equal(plainCodec.tryWrite(writer, value), false);
      assert.equal(plainCodec.tryWrite(writer, { value }), false);
      assert.equal(plainCodec.tryWrite(writer, [{ value: { value } }]), false);
      assert.equal(writer.position, 0);
    }
  });
}

test('Buffers of a pool are plain data, in any order', () => {
  const buffers = Array.from({ length: 100 }, (_, index) => Buffer.from([index, 1, 2]));
  assert.deepStrictEqual(roundTrip(buffers), buffers);
  const few = buffers.slice(0, 20).reverse();
  assert.deepStrictEqual(roundTrip(few), few);
});

test('a writer that cannot grow overflows, and the value fits once there is room', () => {
  const value = {
    text: 'x'.repeat(50),
    list: [1, 2n, 2n ** 80n, 1.5, 'é'.repeat(40), null],
    b: Buffer.alloc(9),
  };
  const whole = written(value);
  for (let limit = 0; limit < whole.byteLength; limit += 1) {
    const writer = new ByteWriter(Buffer.alloc(limit), false);
    assert.equal(plainCodec.tryWrite(writer, value), true);
    assert.equal(writer.overflowed, true, `at ${limit} of ${whole.byteLength} bytes`);
    writer.reset(0, limit);
    assert.equal(plainCodec.tryWrite(writer, undefined), true);
    assert.equal(writer.overflowed, limit === 0);
  }
});

test('a value that is refused does not leave the writer overflowed', () => {
  const writer = new ByteWriter(Buffer.alloc(8), false);
  assert.equal(plainCodec.tryWrite(writer, ['a longer text than fits', () => 1]), true);
  writer.reset(0, 8);
  assert.equal(plainCodec.tryWrite(writer, [() => 1]), false);
  assert.equal(writer.overflowed, false);
});

test('pack takes plain data itself and gives the rest to the slow codec', () => {
  const slow = listCodec();
  const codec = new Codec({ blocks: undefined, slow });
  const plain = codec.pack({ a: 1 });
  assert.deepEqual(plain.definitions, []);
  assert.equal(slow.values.length, 0);
  const date = new Date(0);
  const other = codec.pack({ date });
  assert.deepEqual(other.definitions, [7]);
  const writer = ByteWriter.growing();
  codec.writePacked(writer, plain);
  codec.writePacked(writer, other);
  codec.tryWrite(writer, 'end');
  const reader = new ByteReader(writer.copyFrom(0));
  assert.deepEqual(codec.read(reader), { a: 1 });
  assert.deepEqual(codec.read(reader), { date });
  assert.equal(codec.read(reader), 'end');
});

test('a packed value does not change when the value does', () => {
  const list = [1];
  const packed = plainCodec.pack(list);
  list.push(2);
  assert.deepEqual(plainCodec.read(new ByteReader(Buffer.from(packed.bytes))), [1]);
});

test('only a large buffer stays in the memory of its frame, and only where that is its own', () => {
  const values = [
    Buffer.alloc(100_000, 1),
    new Uint8Array(100_000).fill(2),
    Buffer.alloc(50_000, 3),
  ];
  for (const isOwn of [true, false]) {
    for (const value of values) {
      const frame = Buffer.from(plainCodec.pack([value, Buffer.alloc(80_000)]).bytes);
      const [read]: unknown[] = Object(plainCodec.read(new ByteReader(frame, isOwn)));
      assert.deepEqual(read, value);
      assert.ok(ArrayBuffer.isView(read));
      const isLarge = value.byteLength === 100_000 && Buffer.isBuffer(value);
      assert.equal(read.buffer === frame.buffer, isOwn && isLarge);
      if (!(isOwn && isLarge)) assert.equal(read.buffer.byteLength, value.byteLength);
    }
  }
});

test('packing while packing works: a getter may do it', () => {
  const value = {
    get inner() {
      return plainCodec.pack([1, 2, 3]).bytes.byteLength;
    },
  };
  const slow = listCodec();
  const codec = new Codec({ blocks: undefined, slow });
  const outer = codec.pack(value);
  assert.ok(outer.bytes.byteLength > 0);
  assert.deepEqual(codec.read(new ByteReader(Buffer.from(codec.pack([4]).bytes))), [4]);
});

test('isImmutable returns true only for primitives that tryWrite takes', () => {
  assert.equal(isImmutable([1, 'a', null, undefined, true, 1n]), true);
  assert.equal(isImmutable([]), true);
  assert.equal(isImmutable([1, {}]), false);
  assert.equal(isImmutable([() => 1]), false);
  assert.equal(isImmutable([Symbol('s')]), false, 'the slow codec has to write it');
});

test('the same values arrive where code from strings is forbidden', () => {
  const index = new URL('../../../src/channels/index.js', import.meta.url).href;
  const script = `
    import assert from 'node:assert/strict';
    import { ByteReader, ByteWriter, Codec } from ${JSON.stringify(index)};
    const codec = new Codec({ blocks: undefined, slow: {} });
    for (let time = 0; time < 200; time += 1) {
      const writer = ByteWriter.growing();
      const value = JSON.parse('{"a": 1, "__proto__": {"b": 2}}');
      codec.tryWrite(writer, value);
      assert.deepStrictEqual(codec.read(new ByteReader(writer.copyFrom(0))), value);
    }`;
  const { status, stderr } = spawnSync(
    process.execPath,
    ['--disallow-code-generation-from-strings', '--input-type=module', '-e', script],
    { encoding: 'utf8', timeout: 30_000 },
  );
  assert.equal(status, 0, stderr);
});

test('the codec keeps nothing of what it wrote or refused', async () => {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  assert.ok(typeof collect === 'function');
  const gone: WeakRef<object>[] = [];
  const write = (): void => {
    for (const extra of [undefined, () => 1]) {
      const value = Array.from({ length: 40 }, () => ({ bytes: new Uint8Array(9) }));
      for (const item of value) gone.push(new WeakRef(item), new WeakRef(item.bytes));
      plainCodec.tryWrite(ByteWriter.growing(), [value, extra]);
    }
  };
  write();
  await waitFor(() => {
    collect();
    return gone.every((reference) => reference.deref() === undefined);
  });
});
