// Objects of Node and the web: re-created from their own methods, or refused with an alternative.

import assert from 'node:assert/strict';
import { createSecretKey, generateKeyPairSync, type KeyObject, webcrypto } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import { BlockList, SocketAddress } from 'node:net';
import { test } from 'node:test';
import { createExporter, createImporter } from '../../../src/context/index.js';
import { CodedError, hasCode } from '../../../src/errors.js';

const exporter = createExporter();
const importer = createImporter({ exporter: createExporter() });

function send<T>(value: T): T {
  const { bytes, definitions } = exporter.exportValue([{ value }], 'the arguments');
  assert.deepEqual(definitions, []);
  return Object(importer.importValue(bytes))[0].value;
}

const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const file = new URL(import.meta.url);

interface Row {
  readonly make: () => object;
  /** Values that are equal on both sides. */
  readonly read: (value: never) => unknown;
}

const rows: Record<string, Row> = {
  'an AbortError': {
    make: () => new DOMException('given up', 'AbortError'),
    read: (value: DOMException) => [value.name, value.message, value.code, value.stack],
  },
  'a DOMException with a cause': {
    make: () => Object.assign(new DOMException('m', 'DataError'), { detail: [1] }),
    read: (value: DOMException) => [value.name, Reflect.get(value, 'detail')],
  },
  'a boxed bigint': { make: () => Object(5n), read: (value: object) => value.valueOf() },
  'a boxed symbol': {
    make: () => Object(Symbol.for('boxed')),
    read: (value: object) => value.valueOf(),
  },
  'a TextEncoder': {
    make: () => new TextEncoder(),
    read: (value: InstanceType<typeof TextEncoder>) => [...value.encode('é')],
  },
  'a TextDecoder': {
    make: () => new TextDecoder('utf-16le', { fatal: true }),
    read: (value: InstanceType<typeof TextDecoder>) => [
      value.encoding,
      value.fatal,
      value.decode(Buffer.from('a\0')),
    ],
  },
  Headers: {
    make: () =>
      new Headers([
        ['accept', 'text/plain'],
        ['set-cookie', 'a=1'],
        ['set-cookie', 'b=2'],
      ]),
    read: (value: Headers) => [value.get('accept'), value.getSetCookie()],
  },
  'FormData without files': {
    make: () => {
      const form = new FormData();
      form.append('a', '1');
      form.append('a', '2');
      return form;
    },
    read: (value: FormData) => value.getAll('a'),
  },
  'a secret key': {
    make: () => createSecretKey(Buffer.from('secret')),
    read: (value: KeyObject) => [value.type, value.export().toString()],
  },
  'a public key': {
    make: () => keys.publicKey,
    read: (value: KeyObject) => [value.type, value.export({ type: 'spki', format: 'pem' })],
  },
  'a private key': {
    make: () => keys.privateKey,
    read: (value: KeyObject) => [value.type, value.export({ type: 'pkcs8', format: 'pem' })],
  },
  'a SocketAddress': {
    make: () => new SocketAddress({ address: '::1', port: 80, family: 'ipv6', flowlabel: 7 }),
    read: (value: SocketAddress) => [value.address, value.port, value.family, value.flowlabel],
  },
  'a BlockList': {
    make: () => {
      const list = new BlockList();
      list.addAddress('10.0.0.1');
      list.addRange('10.0.1.0', '10.0.1.9');
      list.addSubnet('2001:db8::', 32, 'ipv6');
      return list;
    },
    read: (value: BlockList) => [
      value.rules,
      value.check('10.0.1.5'),
      value.check('10.0.2.5'),
      value.check('2001:db8::1', 'ipv6'),
    ],
  },
  'the stats of a file': {
    make: () => statSync(file),
    read: (value: ReturnType<typeof statSync>) => [
      value?.isFile(),
      value?.size,
      value?.mtime.getTime(),
    ],
  },
  'an entry of a folder': {
    make: () => Object(readdirSync(new URL('.', file), { withFileTypes: true })[0]),
    read: (value: { name: string; isFile(): boolean; isDirectory(): boolean }) => [
      value.name,
      value.isFile(),
      value.isDirectory(),
    ],
  },
};

for (const [title, { make, read }] of Object.entries(rows)) {
  test(`${title} arrives as it was`, () => {
    const value = make();
    const arrived = send(value);
    assert.notEqual(arrived, value);
    assert.equal(Object.getPrototypeOf(arrived), Object.getPrototypeOf(value));
    assert.deepEqual(read(arrived as never), read(value as never));
  });
}

test('Temporal values arrive where the platform has them', (t) => {
  const temporal: unknown = Reflect.get(globalThis, 'Temporal');
  if (temporal === undefined) {
    t.diagnostic('this Node has no Temporal: nothing to send');
    return;
  }
  const samples: Record<string, string> = {
    Instant: '2020-01-01T00:00:00.123456789Z',
    ZonedDateTime: '2020-06-01T00:00:00+02:00[Europe/Amsterdam]',
    PlainDateTime: '2020-01-01T10:00:00',
    PlainDate: '2020-01-01[u-ca=hebrew]',
    PlainTime: '10:00:00.5',
    PlainYearMonth: '2020-01',
    PlainMonthDay: '02-29',
    Duration: 'P1Y2M3DT4H5M6.007S',
  };
  for (const [name, text] of Object.entries(samples)) {
    const value: object = Object(temporal)[name].from(text);
    const arrived = send(value);
    assert.equal(Object.getPrototypeOf(arrived), Object.getPrototypeOf(value));
    assert.equal(String(arrived), String(value));
  }
});

const form = new FormData();
form.append('file', new Blob(['a']));

const refused: Record<string, readonly [make: () => unknown, pattern: RegExp]> = {
  'a Blob': [() => new Blob(['a']), /it is a Blob: .*await blob\.arrayBuffer\(\)/],
  'FormData with files': [() => form, /it is a FormData: it has files/],
  'a Request': [() => new Request('http://localhost/'), /it is a Request: .*pass its url/],
  'a Response': [() => new Response('a'), /it is a Response: .*response\.json\(\)/],
  'a compiled module': [
    () => {
      const wasm: unknown = Reflect.get(globalThis, 'WebAssembly');
      const Module: unknown = Reflect.get(Object(wasm), 'Module');
      const bytes = Buffer.from([0, 97, 115, 109, 1, 0, 0, 0]);
      return typeof Module === 'function' && Reflect.construct(Module, [bytes]);
    },
    /it is a Module: .*compile them once per worker/,
  ],
  'a CryptoKey': [
    () =>
      webcrypto.subtle.generateKey({ name: 'AES-GCM', length: 128 }, true, ['encrypt', 'decrypt']),
    /it is a CryptoKey: .*KeyObject\.from\(key\)/,
  ],
};

for (const [title, [make, pattern]] of Object.entries(refused)) {
  test(`${title} is refused with an alternative`, async () => {
    const value = await make();
    assert.throws(
      () => send(value),
      (error) => {
        assert.ok(error instanceof CodedError && hasCode(error, 'TRANSFER_UNSUPPORTED'));
        assert.match(error.message, pattern);
        assert.match(error.message, /path: the arguments\[0\]\.value/);
        return true;
      },
    );
  });
}
