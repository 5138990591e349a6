// Vert.x's cases of one body for each of its types (EventBusTestBase), and of changes after the call
// (JsonEventBusTest).

import assert from 'node:assert/strict';
import { answer, type Case, record } from './case.js';

class Point {
  readonly x: number;
  constructor(x: number) {
    this.x = x;
  }
}

/** Vert.x's types, by their part in the names of its tests. */
const values: readonly (readonly [type: string, value: unknown])[] = [
  ['Null', null],
  ['String', 'a text, ü and 語'],
  ['BooleanTrue', true],
  ['BooleanFalse', false],
  ['Buffer', Buffer.from('bytes')],
  ['Byte', -128],
  ['ByteArray', new Uint8Array([0, 1, 255])],
  ['Character', 'x'],
  ['Double', 1.5e300],
  ['Float', Math.fround(0.1)],
  ['Integer', 2 ** 31 - 1],
  ['Long', 2n ** 63n - 1n],
  ['Short', 2 ** 15 - 1],
  ['BigInteger', 10n ** 40n],
  ['JsonArray', ['a', 1, { b: [null] }]],
  ['JsonObject', { a: 1, b: { c: ['d'] } }],
  ['ClusterSerializable', { list: new Map([['a', new Date(0)]]) }],
  ['Serializable', new Point(4)],
];

function casesOf([type, value]: readonly [string, unknown]): Case[] {
  // Another program has a class of its own for such an object, with the same text.
  const plain = (given: unknown): unknown => {
    const itsClass: unknown = Object(given).constructor;
    const isPoint = typeof itsClass === 'function' && itsClass.name === Point.name;
    return isPoint ? [Point.name, { ...Object(given) }] : given;
  };
  return [
    {
      name: `testSend${type}`,
      expects: 'the consumer gets an equal body',
      run: async ({ bus, address, there, noted }) => {
        await there(record(address));
        bus.send(address, value);
        assert.deepEqual((await noted(1)).map(plain), [plain(value)]);
      },
    },
    {
      name: `testReply${type}`,
      expects: 'the requester gets an equal body',
      run: async ({ bus, address, there }) => {
        await there(answer(address, value));
        assert.deepEqual(plain((await bus.request(address, 'any')).body), plain(value));
      },
    },
    {
      name: `testPublish${type}`,
      expects: 'every consumer gets an equal body',
      run: async ({ bus, address, there, noted }) => {
        await there(record(address, 'a'));
        await there(record(address, 'b'));
        bus.publish(address, value);
        assert.deepEqual((await noted(2)).map(plain), [plain(value), plain(value)]);
      },
    },
  ];
}

const noDecimals: readonly Case[] = ['Send', 'Reply', 'Publish'].map((call) => ({
  name: `test${call}BigDecimal`,
  expects: 'an equal body',
  absent: 'JavaScript has no decimal type.',
}));

const noSelectors: readonly Case[] = ['Send', 'Reply', 'Publish'].map((call) => ({
  name: `test${call}WithCodecFromSelector`,
  expects: 'a function chooses the codec of each body',
  differs:
    'A codec is chosen by the class of the body or by the option `codec`, not by a function.',
}));

/** Changes a body right after the call, and notes what arrives. */
const unchanged = (name: string, call: 'send' | 'publish' | 'reply', isArray: boolean): Case => ({
  name,
  expects: `what changes after ${call} is not visible to the receiver`,
  run: async ({ bus, address, there, noted }) => {
    const make = (): unknown[] | Record<string, unknown> => (isArray ? ['a'] : { a: 1 });
    const change = (body: object): void => void Reflect.set(body, isArray ? 1 : 'b', 'late');
    if (call === 'reply') {
      await there(({ bus: other }) => {
        other.consumer(address, (message) => {
          const body = isArray ? ['a'] : { a: 1 };
          message.reply(body);
          Reflect.set(body, isArray ? 1 : 'b', 'late');
        });
      });
      assert.deepEqual((await bus.request(address, 0)).body, make());
      return;
    }
    await there(record(address));
    const body = make();
    bus[call](address, body);
    change(body);
    assert.deepEqual(await noted(1), [make()]);
  },
});

export const bodyCases: readonly Case[] = [
  ...values.flatMap(casesOf),
  ...noDecimals,
  ...noSelectors,
  unchanged('testChangesNotVisibleObject1', 'send', false),
  unchanged('testChangesNotVisibleObject2', 'publish', false),
  unchanged('testChangesNotVisibleObject3', 'reply', false),
  unchanged('testChangesNotVisibleArray1', 'send', true),
  unchanged('testChangesNotVisibleArray2', 'publish', true),
  unchanged('testChangesNotVisibleArray3', 'reply', true),
];
