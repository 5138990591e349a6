// Certificates of apps that are exported: chosen by the name that a client asks for, and read again at a reload.

import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { connect } from 'node:tls';
import { fillServeOptions } from '../../src/serve/options.js';
import { cert, key, otherCert, otherKey } from './apps/certificate.js';
import { portOf } from './client.js';
import { folder, open, program } from './served.js';

/** The certificate files of `localhost` and of `other.example`. */
function certificates(t: TestContext) {
  const at = folder(t);
  const write = (name: string, text: string): string => {
    writeFileSync(join(at, name), text);
    return join(at, name);
  };
  const own = { cert: write('cert.pem', cert), key: write('key.pem', key) };
  const other = { cert: write('other.pem', otherCert), key: write('other-key.pem', otherKey) };
  return { own, other };
}

const app = (t: TestContext): string =>
  program(t, 'app.mjs', "export default (request, response) => response.end('secure');");

/** Name in the certificate that a client gets which asks for `servername`. */
function nameAt(port: number, servername = 'localhost'): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', servername, rejectUnauthorized: false });
    socket.on('error', reject);
    socket.on('secureConnect', () => {
      resolve(socket.getPeerCertificate().subject.CN);
      socket.destroy();
    });
  });
}

test('a reload takes new certificates, and keeps the old one when the new one does not parse', async (t) => {
  const { own } = certificates(t);
  const server = await open(t, app(t), { processes: 2, loops: 1, port: 0, tls: own });
  const port = portOf(server);
  assert.equal(await nameAt(port), 'localhost');
  const refused = {
    code: 'SERVE_START_FAILED',
    message: /serve on as they were: .*the certificate .*cert.pem with the key .* cannot be used: /,
  };
  writeFileSync(own.cert, 'no certificate');
  await assert.rejects(server.reload(), refused);
  assert.equal(await nameAt(port), 'localhost');
  writeFileSync(own.cert, otherCert); // of another key
  await assert.rejects(server.reload(), refused);
  rmSync(own.cert);
  await assert.rejects(server.reload(), refused);
  assert.equal(await nameAt(port), 'localhost');
  writeFileSync(own.cert, otherCert);
  writeFileSync(own.key, otherKey);
  await server.reload();
  assert.equal(await nameAt(port), 'other.example');
});

for (const http2 of [false, true]) {
  test(`a client gets the certificate of the name that it asks for: http2 ${http2}`, async (t) => {
    const { own, other } = certificates(t);
    const names = { 'Other.example': other, 'own.wild.example': own, '*.wild.example': other };
    const tls = { ...own, http2, names };
    const server = await open(t, app(t), { loops: 1, port: 0, tls });
    const port = portOf(server);
    for (const [asked, expected] of [
      ['other.example', 'other.example'],
      ['a.wild.example', 'other.example'],
      ['own.wild.example', 'localhost'],
      ['a.b.wild.example', 'localhost'],
      ['unknown.example', 'localhost'],
    ] as const) {
      assert.equal(await nameAt(port, asked), expected, asked);
    }
  });
}

test('wrong names and certificates are refused by name', (t) => {
  const { own } = certificates(t);
  for (const names of [
    null,
    5,
    'a.example',
    { 'a.example': null },
    { 'a.example': 'cert.pem' },
    { 'a.example': {} },
    { 'a.example': { cert: own.cert } },
    { 'a.example': { ...own, key: '/no/such/key' } },
    { 'a.example': { ...own, ca: own.cert } },
    { 'a/b': own },
    { '': own },
  ]) {
    assert.throws(
      () => Reflect.apply(fillServeOptions, undefined, [{ tls: { ...own, names } }]),
      (error: Error & { code?: string }) =>
        error.code === 'OPTION_INVALID' && error.message.includes('tls.names'),
    );
  }
});
