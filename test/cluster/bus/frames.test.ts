// Input from a network: frames that are whole, changed, repeated, or random.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ByteReader } from '../../../src/channels/index.js';
import { checkAge, ReplayWindow, Signer } from '../../../src/cluster/bus/signature.js';
import { ClusterValues } from '../../../src/cluster/bus/values.js';
import { fillClusterOptions } from '../../../src/cluster/index.js';
import { Outbox } from '../../../src/cluster/nats/outbox.js';
import { tokensOf } from '../../../src/cluster/nats/subjects.js';
import { fillLendOptions } from '../../../src/cluster/options.js';
import {
  parseNode,
  readDefinitions,
  readHead,
  signatureBytes,
  writeFrame,
  writeNode,
} from '../../../src/cluster/protocol.js';
import { format, read, write } from '../../../src/context/wire.js';
import { CodedError } from '../../../src/public.js';
import { waitFor } from '../../support/index.js';
import { eventually, refusals } from '../server.js';

const sender = '00112233445566778899aabbccddeeff';
const secret = 'nobody else knows this';
const corrupt = /^(TRANSFER|CHANNEL)_/;

function frameOf(definitions: { id: number; bytes: Uint8Array }[], value: Uint8Array): Buffer {
  return writeFrame({ kind: 1, sender, number: 7, time: 8.5 }, definitions, value, 0);
}

test('a frame is read as it was written', () => {
  const definition = fc.record({
    id: fc.integer({ min: -1000, max: 1000 }),
    bytes: fc.uint8Array(),
  });
  fc.assert(
    fc.property(fc.array(definition), fc.uint8Array(), (definitions, value) => {
      const reader = new ByteReader(frameOf(definitions, value));
      assert.deepEqual(readHead(reader), { kind: 1, sender, number: 7, time: 8.5 });
      const read = readDefinitions(reader).map(({ id, bytes }) => [id, [...bytes]]);
      assert.deepEqual(
        read,
        definitions.map(({ id, bytes }) => [id, [...bytes]]),
      );
      assert.deepEqual([...reader.copy(reader.limit - reader.position)], [...value]);
    }),
  );
});

test('any input is read, or refused with a code', () => {
  const reading = (bytes: Uint8Array): void => {
    const reader = new ByteReader(Buffer.from(bytes));
    const values = new ClusterValues(true).reader();
    readHead(reader);
    values.receive(reader, (read) => void read());
  };
  const whole = frameOf([{ id: 1, bytes: new Uint8Array(20) }], new Uint8Array(30));
  const changed = fc
    .array(fc.tuple(fc.nat(whole.byteLength - 1), fc.integer({ min: 0, max: 255 })))
    .map((changes) => {
      const bytes = Uint8Array.from(whole);
      for (const [at, byte] of changes) bytes[at] = byte;
      return bytes;
    });
  const cut = fc.nat(whole.byteLength).map((length) => whole.subarray(0, length));
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 200 }), changed, cut), (bytes) => {
      try {
        reading(bytes);
      } catch (error) {
        assert.ok(error instanceof CodedError, String(error));
        assert.match(error.code, corrupt);
      }
    }),
    { numRuns: 2000 },
  );
});

test('a module that never finishes loading delays later frames for a limited time and number', async (t) => {
  const values = new ClusterValues(true, {
    limits: { loadingMs: 300, frames: 3, bytes: 2000 },
  });
  const why = refusals(t);
  const receiver = values.reader();
  const got: unknown[] = [];
  const receive = (value: unknown, isHanging = false): void => {
    const { bytes, definitions } = values.encode(value);
    const own = definitions.map(({ id, bytes: code }) => ({
      id,
      bytes: isHanging ? hanging(code) : code,
    }));
    const reader = new ByteReader(frameOf(own, bytes));
    readHead(reader);
    receiver.receive(reader, (read) => {
      try {
        got.push(read());
      } catch (error) {
        got.push(Object(error).code, String(error));
      }
    });
  };
  receive(() => eventually, true);
  receive('second');
  assert.throws(() => receive('x'.repeat(2000)), { code: 'CLUSTER_REFUSED', message: /wait/ });
  receive('third');
  const full = /3 frames of a loop wait for a module that it imports/;
  assert.throws(() => receive('fourth'), { code: 'CLUSTER_REFUSED', message: full });
  assert.deepEqual(got, []);
  await waitFor(() => got.length > 0);
  receive('fifth');
  const [code, text, ...others] = got;
  assert.equal(code, 'TRANSFER_IMPORT_FAILED');
  assert.match(String(text), /data:text\/javascript,await .* has not ended loading/);
  assert.deepEqual(others, ['second', 'third', 'fifth']);
  assert.match(why.join(), /has not been loaded within 300 ms/);
  got.length = 0;
  receive(() => waitFor, true);
  receive('x'.repeat(1000)); // there is room again
  await waitFor(() => got.length > 0);
  assert.equal(got.at(-1), 'x'.repeat(1000));
});

/** Returns a definition unchanged, except one of a module: that never finishes loading. */
function hanging(definition: Uint8Array): Uint8Array {
  const { value } = read(definition, undefined);
  if (Object(value).kind !== 'module') return definition;
  const specifier = 'data:text/javascript,await new Promise(() => {})';
  return write(format.definition, { ...Object(value), specifier, parent: '' }, undefined).bytes;
}

test('another version is named', () => {
  const frame = frameOf([], new Uint8Array(1));
  frame[2] = 99;
  assert.throws(() => readHead(new ByteReader(frame)), {
    code: 'TRANSFER_CORRUPT',
    message: /its version is 99, ours 2/,
  });
});

test('a signature is valid for its bytes, its target, its secret and its cluster alone', () => {
  const signer = new Signer(secret, 'name');
  const frame = Buffer.concat([frameOf([], Buffer.from('value')), Buffer.alloc(signatureBytes)]);
  signer.sign(frame, 'target');
  assert.deepEqual(signer.verify(frame, 'target'), frame.subarray(0, -signatureBytes));
  const refused = { code: 'CLUSTER_REFUSED' };
  for (let at = 0; at < frame.byteLength; at += 1) {
    const changed = Buffer.from(frame);
    changed[at] = (changed[at] ?? 0) ^ 1;
    assert.throws(() => signer.verify(changed, 'target'), refused, `byte ${at}`);
  }
  assert.throws(() => signer.verify(frame, 'other'), refused);
  assert.throws(() => new Signer(`${secret}!`, 'name').verify(frame, 'target'), refused);
  assert.throws(() => new Signer(secret, 'other').verify(frame, 'target'), refused);
  for (const size of [0, 1, signatureBytes - 1, signatureBytes]) {
    assert.throws(() => signer.verify(frame.subarray(0, size), 'target'), refused);
  }
});

test('each frame is accepted once, in any order', () => {
  const numbers = fc.array(fc.nat(10_000), { maxLength: 300 });
  fc.assert(
    fc.property(numbers, (given) => {
      const window = new ReplayWindow();
      const taken = new Set<number>();
      let highest = -1;
      for (const number of given) {
        const isNew = !taken.has(number) && number > highest - 4096;
        const head = { kind: 1, sender, number, time: 1000 };
        if (isNew) {
          window.check(head);
          taken.add(number);
          highest = Math.max(highest, number);
        } else assert.throws(() => window.check(head), { code: 'CLUSTER_REFUSED' });
      }
    }),
  );
});

test('a frame that is old, or from a clock that is ahead, is refused', () => {
  const window = new ReplayWindow();
  const head = { kind: 1, sender, number: 1, time: 100_000 };
  for (const now of [161_000, 39_000, Number.NaN]) {
    assert.throws(() => checkAge(head, now), { code: 'CLUSTER_REFUSED', message: /clocks/ });
  }
  checkAge(head, 100_000);
  assert.throws(() => window.check({ ...head, number: Number.NaN }), /no number/);
  window.check(head);
});

test('every address has a subject of its own that NATS accepts', () => {
  const tokens = new Map<string, string>();
  fc.assert(
    fc.property(fc.string({ unit: 'binary', minLength: 1, maxLength: 30 }), (address) => {
      const subject = tokensOf(address);
      assert.match(subject, /^[\w%-]+(\.[\w%-]+)*$/);
      assert.equal(tokens.get(subject) ?? address, address);
      tokens.set(subject, address);
    }),
    { numRuns: 2000 },
  );
  assert.equal(tokensOf('prices.uk'), 'prices.uk');
});

test('an announcement of a node is JSON of a known form', () => {
  const node = '0123456789abcdef01234567';
  const own = { type: 'joined', node, host: 'a', pid: 1, version: '1', protocol: 1 } as const;
  const message = { ...own, startedAt: 1, time: 2, isSigned: false };
  assert.deepEqual(parseNode(writeNode(message)), message);
  const signed = Buffer.concat([writeNode(message), Buffer.alloc(signatureBytes, 1)]);
  assert.deepEqual(parseNode(signed), message); // so that errors can name strangers
  const wrong: unknown[] = [1, null, [], {}, own, { ...message, node: '../x' }];
  for (const each of [...wrong, { ...message, type: 'else' }, { ...message, pid: '1' }]) {
    const bytes = Buffer.from(JSON.stringify(each));
    assert.throws(() => parseNode(bytes), { code: 'TRANSFER_CORRUPT' });
  }
  assert.throws(() => parseNode(Buffer.from('{')), { code: 'TRANSFER_CORRUPT' });
});

test('a user in a URL becomes a user of the NATS client, and is removed from the URL', () => {
  const filled = (nats: string | string[]) => fillClusterOptions({ nats }).nats;
  assert.deepEqual(filled('nats://anna:p%40ss@host:4222'), {
    servers: ['nats://host:4222'],
    user: 'anna',
    pass: 'p@ss',
  });
  assert.deepEqual(filled(['tls://a', 'host:1']), { servers: ['tls://a', 'host:1'], tls: {} });
});

test('frames that wait for a connection are finished when they are sent', () => {
  const gone: unknown[] = [];
  const connection = {
    publish: (subject: string) => gone.push(subject),
    isClosed: () => false,
    flush: () => new Promise<void>(() => {}),
  };
  const finished: string[] = [];
  const outbox: Outbox = Reflect.construct(Outbox, [
    connection,
    { finish: (subject: string) => void finished.push(subject), drained: () => {} },
  ]);
  outbox.publish('first', Buffer.alloc(1));
  outbox.disconnected();
  outbox.publish('second', Buffer.alloc(1));
  assert.deepEqual([gone, finished], [['first'], ['first']]);
  outbox.reconnected();
  outbox.sendNow();
  assert.deepEqual(
    [gone, finished],
    [
      ['first', 'second'],
      ['first', 'second'],
    ],
  );
  outbox.close();
});

test('wrong options of a cluster are refused, and a secret is not printed', () => {
  const nats = 'nats://127.0.0.1:1';
  const wrong: unknown[] = [
    undefined,
    {},
    { nats: '' },
    { nats: [] },
    { nats: { servers: [''] } },
    { nats: { servers: nats, user: 7 } },
    { nats: { servers: nats, port: 7 } },
    { nats: null },
    { nats: 7 },
    { nats: { servers: nats, pingInterval: 99 } },
    { nats, transport: 'udp' },
    null,
    { nats, name: 'a.b' },
    { nats, secret: 'short' },
    { nats, local: 'only' },
    { nats, timeoutMs: 0 },
    { nats, more: 1 },
  ];
  for (const options of wrong) {
    assert.throws(
      () => Reflect.apply(fillClusterOptions, undefined, [options]),
      (error: CodedError) => {
        assert.equal(error.code, 'OPTION_INVALID');
        assert.doesNotMatch(error.message, /short/);
        return true;
      },
      JSON.stringify(options),
    );
  }
});

test('wrong options of TLS are refused by name, and no key is printed', () => {
  const fill = (tls: unknown) => () =>
    Reflect.apply(fillClusterOptions, undefined, [{ nats: { servers: 'tls://a', tls } }]);
  for (const [tls, message] of [
    [null, /^nats\.tls must be an object, not null$/],
    [true, /^nats\.tls must be an object, not true$/],
    [{ cafile: 'ca.pem' }, /^there is no "cafile" in nats\.tls: .*did you mean caFile\?$/],
    [{ certfile: 'c.pem' }, /^there is no "certfile" in nats\.tls: .*did you mean certFile\?$/],
    [{ caFile: 7 }, /^nats\.tls\.caFile is 7: it must be a path$/],
    [{ keyFile: '' }, /^nats\.tls\.keyFile is "": it must be a path$/],
    [{ ca: true }, /^nats\.tls\.ca is true: it must be PEM text$/],
    [{ key: Buffer.from('private') }, /^nats\.tls\.key is Uint8Array of length 7: /],
    [{ passphrase: 5678 }, /^nats\.tls\.passphrase is "…": it must be a text$/],
    [{ servername: 7 }, /^nats\.tls\.servername is 7: it must be a host name$/],
    [{ handshakeFirst: 'yes' }, /^nats\.tls\.handshakeFirst is "yes": it must be true or false$/],
    [{ rejectUnauthorized: 0 }, /^nats\.tls\.rejectUnauthorized is 0: it must be true or false$/],
  ] as const) {
    assert.throws(fill(tls), { code: 'OPTION_INVALID', message });
  }
  const texts = { ca: 'a', cert: 'b', key: 'c', passphrase: 'd', servername: 'e' };
  const all = { ...texts, handshakeFirst: true, rejectUnauthorized: false };
  assert.deepEqual(fill(all)().nats.tls, all);
});

test('wrong options of lendWorkers are refused', () => {
  for (const [options, message] of [
    [null, /^the options of lendWorkers must be an object, not null$/],
    [{ durable: 1 }, /^durable is 1: it must be true or false$/],
    [{ durable: 'yes' }, /^durable is "yes": /],
    [{ durable: false, modules: ['file:///a.js'] }, /^durable is false: it must be true where/],
    [{ modules: null }, /^modules is null: it must be an array of URLs/],
    [{ modules: 7 }, /^modules is 7: /],
    [{ modules: 'file:///a.js' }, /^modules is "file:\/\/\/a\.js": it must be an array of URLs/],
    [{ modules: ['a.js'] }, /^modules is "a\.js": it must be URLs/],
    [{ drainTimeoutMs: -1 }, /^drainTimeoutMs is -1: it must be an integer from 0 to /],
    [{ drainTimeoutMs: '5' }, /^drainTimeoutMs is "5": /],
    [{ drainTimeoutMs: Infinity }, /^drainTimeoutMs is Infinity: /],
  ] as const) {
    assert.throws(() => Reflect.apply(fillLendOptions, undefined, [options]), {
      code: 'OPTION_INVALID',
      message,
    });
  }
});
