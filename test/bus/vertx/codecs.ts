// Vert.x's cases of codecs (LocalEventBusTest, ClusteredEventBusTest, ReplyFailureErrorTest).

import assert from 'node:assert/strict';
import type { BusCodec } from '../../../src/public.js';
import type { Act, Case } from './case.js';

class Word {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** Sends the text, and arrives as one. */
const asymmetric = { encode: ({ text }: Word) => text, decode: (text: string) => `got ${text}` };
/** Arrives as what was sent. */
const symmetric = { encode: ({ text }: Word) => text, decode: (text: string) => new Word(text) };

type Functions = typeof asymmetric | typeof symmetric;

function codecOf(name: string, functions: Functions, isDefault: boolean): BusCodec {
  const { encode, decode } = functions;
  const codec = { name, encode, decode, type: isDefault ? Word : undefined };
  const any: BusCodec = Object(codec);
  return any;
}

const add =
  (codec: BusCodec): Act =>
  ({ bus, kept }) =>
    void kept.set('codec', bus.addCodec(codec));

const textOf = (body: unknown): unknown =>
  typeof body === 'object' ? Reflect.get(Object(body), 'text') : body;

function travels(how: 'Send' | 'Reply', isSymmetric: boolean, isDefault: boolean): Case {
  const suffix = isSymmetric ? (isDefault ? 'Symetric' : 'Symmetric') : 'Asymmetric';
  const name = `test${isDefault ? 'Default' : ''}Decoder${how}${suffix}`;
  const by = isDefault ? 'of its class' : 'that the message names';
  return {
    name,
    expects: `the codec ${by} encodes and decodes a body`,
    run: async ({ bus, address, there, noted }) => {
      const codec = codecOf(address, isSymmetric ? symmetric : asymmetric, isDefault);
      using _ = bus.addCodec(codec);
      await there(add(codec));
      const body = new Word('text');
      const options = isDefault ? {} : { codec: address };
      const expected = isSymmetric ? 'text' : 'got text';
      if (how === 'Send') {
        await there(({ bus: other, note }) => {
          other.consumer(address, (message) => note(textOf(message.body)));
        });
        bus.send(address, body, options);
        assert.deepEqual(await noted(1), [expected]);
      } else {
        await there(({ bus: other }) => {
          other.consumer(address, (message) => message.reply(new Word('text'), options));
        });
        assert.equal(textOf((await bus.request(address, 'any')).body), expected);
      }
    },
  };
}

const twice = (name: string, isDefault: boolean): Case => ({
  name,
  expects: 'a codec that is there already is refused',
  differs:
    'The same codec may be added again, as by several units of a loop; another one of its name is refused.',
  run: async ({ bus, address }) => {
    using _ = bus.addCodec(codecOf(address, symmetric, isDefault));
    using _again = bus.addCodec(codecOf(address, symmetric, isDefault));
    assert.throws(() => bus.addCodec(codecOf(address, asymmetric, isDefault)), {
      code: 'OPTION_INVALID',
    });
  },
});

const noName = (name: string, isDefault: boolean): Case => ({
  name,
  expects: 'a codec without a name is refused',
  run: async ({ bus }) => {
    const codec = { ...codecOf('any', symmetric, isDefault), name: Object(undefined) };
    assert.throws(() => bus.addCodec(codec), { code: 'OPTION_INVALID' });
  },
});

const asItIs = (name: string): Case => ({
  name,
  expects: 'a body of a class without a codec is refused',
  differs: 'It travels as an object of its class.',
  run: async ({ bus, address, there, noted }) => {
    await there(({ bus: other, note }) => {
      other.consumer(address, (message) => note(textOf(message.body)));
    });
    const codec = codecOf(address, asymmetric, true);
    bus.addCodec(codec).close();
    bus.send(address, new Word('as it is'));
    assert.deepEqual(await noted(1), ['as it is']);
  },
});

const systemCodec = (name: string): Case => ({
  name,
  expects: 'codecs of the system cannot be added',
  run: async ({ bus, address }) => {
    const codec = { ...codecOf(address, symmetric, true), type: Object(Date) };
    assert.throws(() => bus.addCodec(codec), { code: 'OPTION_INVALID' });
  },
});

const noChecker = (name: string): Case => ({
  name,
  expects: 'a function refuses classes that may not travel',
  differs:
    'No function lists allowed classes: a program that trusts no sender has a secret, and unsigned frames carry data only.',
});

class OwnError extends Error {
  readonly detail: number;
  constructor(detail: number) {
    super('my exception');
    this.detail = detail;
  }
}

export const codecCases: readonly Case[] = [
  ...[false, true].flatMap((isDefault) =>
    [false, true].flatMap((isSymmetric) => [
      travels('Send', isSymmetric, isDefault),
      travels('Reply', isSymmetric, isDefault),
    ]),
  ),
  {
    name: 'testNoRegisteredDecoder',
    expects: 'a message that names an unknown codec is refused',
    run: async ({ bus, address }) => {
      assert.throws(() => bus.send(address, 'foo', { codec: 'iqw' }), { code: 'BUS_CODEC_FAILED' });
    },
  },
  {
    name: 'testUnregisterDecoder',
    expects: 'a codec that was removed is unknown',
    run: async ({ bus, address }) => {
      bus.addCodec(codecOf(address, symmetric, false)).close();
      assert.throws(() => bus.send(address, new Word('a'), { codec: address }), {
        code: 'BUS_CODEC_FAILED',
      });
    },
  },
  systemCodec('testRegisterSystemDecoder'),
  systemCodec('testRegisterDefaultSystemDecoder'),
  twice('testRegisterTwice', false),
  twice('testRegisterDefaultTwice', true),
  noName('testCodecNullName', false),
  noName('testDefaultCodecNullName', true),
  asItIs('testNoRegisteredDefaultDecoder'),
  asItIs('testUnregisterDefaultDecoder'),
  {
    name: 'testDefaultCodecReplyExceptionSubclass',
    expects: 'a codec of an error class encodes and decodes such a body',
    run: async ({ bus, address, there, noted }) => {
      const codec: BusCodec = Object({
        name: address,
        type: OwnError,
        encode: ({ detail }: OwnError) => detail,
        decode: (detail: number) => new OwnError(detail),
      });
      using _ = bus.addCodec(codec);
      await there(add(codec));
      await there(({ bus: other, note }) => {
        other.consumer<OwnError>(address, ({ body }) =>
          note([body.constructor.name, body.message, body.detail]),
        );
      });
      bus.send(address, new OwnError(23));
      assert.deepEqual(await noted(1), [['OwnError', 'my exception', 23]]);
    },
  },
  {
    name: 'testUnknownCodec',
    expects: 'a request whose codec the consumer lacks rejects',
    least: 'two processes',
    run: async ({ bus, address, there, notes }) => {
      await there(({ bus: other, note }) => {
        other.consumer(address, ({ body }) => note(body));
      });
      using _ = bus.addCodec(codecOf(address, symmetric, false));
      const request = bus.request(address, new Word('a'), { codec: address });
      await assert.rejects(request, { code: 'BUS_CODEC_FAILED' });
      assert.deepEqual(notes, []);
    },
  },
  {
    name: 'testMessageBodyInterceptor',
    expects: 'an interceptor of sent messages sees the body before its codec',
    run: async ({ bus, address, there, noted }) => {
      const codec = codecOf(address, asymmetric, false);
      using _ = bus.addCodec(codec);
      await there(add(codec));
      await there(({ bus: other, note }) => {
        other.consumer(address, ({ body }) => note(body));
      });
      const seen: unknown[] = [];
      using _interceptor = bus.intercept({
        outbound: (message) => {
          if (message.address === address) seen.push(message.body instanceof Word);
        },
      });
      bus.send(address, new Word('a'), { codec: address });
      assert.deepEqual(await noted(1), ['got a']);
      assert.deepEqual(seen, [true]);
    },
  },
  noChecker('testRejectedClusterSerializableNotSent'),
  noChecker('testRejectedSerializableNotSent'),
  noChecker('testRejectedClusterSerializableNotReceived'),
  noChecker('testRejectedSerializableNotReceived'),
];
