// Credentials in files: those that expire, with and without a renewal, and nkeys.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { announcements } from '../../src/lib/index.js';
import { Pool } from '../../src/public.js';
import { waitFor } from '../support/index.js';
import { makeCredentials, makeNkey } from './credentials.js';
import { joinBus, skip, startServer } from './server.js';
import { double, secret } from './tasks/durables.js';

/** Returns the path of a file that the test removes. */
function fileOf(t: TestContext, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-credentials-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'file');
  writeFileSync(file, text);
  return file;
}

const refusedCredentials = {
  code: 'CLUSTER_REFUSED',
  message: /^the NATS server at \S+ refuses these credentials: /,
};

/** Time in which the test has to join, in seconds. */
const validSeconds = 15;

test('credentials that expire end the cluster, unless their file was renewed', {
  skip,
}, async (t) => {
  const { config, until } = await makeCredentials();
  const server = await startServer(t, ['-js', '-c', fileOf(t, config)]);
  const joinWith = (credsFile: string) =>
    joinBus(t, server, { secret, nats: { servers: server.url, credsFile } });
  const now = Math.floor(Date.now() / 1000);
  await assert.rejects(joinWith(fileOf(t, until(now - 1))), refusedCredentials);
  const sound = until(now + 3600);
  const broken = [
    sound.slice(0, 200), // half written
    sound.slice(0, sound.indexOf('------END USER')),
    sound.replace(/(?<=\nSU.{20})./, (each) => (each === 'A' ? 'B' : 'A')),
  ];
  for (const text of broken) {
    await assert.rejects(joinWith(fileOf(t, text)), {
      code: 'OPTION_INVALID',
      message: /^nats\.credsFile .* cannot be read: /,
    });
  }
  for (const text of [sound.trimEnd(), sound.replaceAll('\n', '\r\n')]) {
    const { cluster } = await joinWith(fileOf(t, text));
    await cluster.close();
  }
  let backs = 0;
  const onBack = (): void => {
    backs += 1;
  };
  announcements.clusterBack.subscribe(onBack);
  t.after(() => announcements.clusterBack.unsubscribe(onBack));
  const soon = Math.floor(Date.now() / 1000) + validSeconds;
  const [old, fresh] = [fileOf(t, until(soon)), fileOf(t, until(soon))];
  const [left, stays] = [await joinWith(old), await joinWith(fresh)];
  writeFileSync(fresh, until(soon + 3600));
  stays.bus.consumer('never', () => {});
  await stays.bus.drained();
  await stays.cluster.lock('held').acquire();
  const pool = new Pool({ cluster: left.cluster });
  t.after(() => pool.destroy());
  const waiting = Promise.all([
    assert.rejects(left.bus.request('never', 1, { timeoutMs: 60_000 }), {
      code: /^(CLUSTER|BUS)_/,
    }),
    assert.rejects(left.cluster.lock('held').acquire({ timeoutMs: 60_000 }), {
      code: 'CLUSTER_CLOSED',
    }),
    assert.rejects(pool.with({ durable: true }).run(double, 1), { code: 'CLUSTER_CLOSED' }),
  ]);
  await assert.rejects(left.cluster.closed, refusedCredentials);
  await waiting;
  left.bus.consumer('own', (message) => message.reply('here'));
  assert.equal((await left.bus.request('own', 1)).body, 'here');
  await waitFor(() => backs > 0);
  // The last good text stays.
  for (const [at, spoil] of [
    () => rmSync(fresh),
    ...broken.map((text) => () => writeFileSync(fresh, text)),
  ].entries()) {
    spoil();
    await stays.cluster.map<number>('m').set('k', at);
    const before = backs;
    await server.restart();
    await waitFor(() => backs > before);
    assert.equal(await stays.cluster.map<number>('m').get('k'), at);
  }
});

test('a user with an nkey joins with the file of its seed', { skip }, async (t) => {
  const [user, other] = [await makeNkey(), await makeNkey()];
  const config = `authorization: { users: [ { nkey: ${user.key} } ] }`;
  const server = await startServer(t, ['-c', fileOf(t, config)]);
  const joinWith = (options: object) =>
    joinBus(t, server, { nats: { servers: server.url, ...options } });
  const { cluster } = await joinWith({ nkeyFile: fileOf(t, `${user.seed}\n`) });
  assert.deepEqual(cluster.nodes, []);
  await assert.rejects(joinWith({ nkeyFile: fileOf(t, other.seed) }), refusedCredentials);
  const nkeyFile = fileOf(
    t,
    user.seed.replace(/(?<=^.{20})./, (each) => (each === 'A' ? 'B' : 'A')),
  );
  const wrong: [options: object, pattern: RegExp][] = [
    [{ nkeyFile: '/nowhere/at.all' }, /nats\.nkeyFile \/nowhere\/at\.all cannot be read: ENOENT/],
    [{ nkeyFile: fileURLToPath(import.meta.url) }, /nkeyFile .* it holds no seed of a user/],
    [{ nkeyFile }, /nats\.nkeyFile .* cannot be read: .*checksum/],
    [{ nkeyFile: 3 }, /nats\.nkeyFile is 3: it must be a text/],
    [{ nkeyFile, credsFile: nkeyFile }, /nats\.nkeyFile .* left out with credsFile/],
    [{ nkeysFile: nkeyFile }, /nkeysFile.*nkeyFile/],
  ];
  for (const [options, pattern] of wrong) {
    await assert.rejects(
      async () => await joinWith(options),
      (error: Error) => {
        assert.equal(Object(error).code, 'OPTION_INVALID');
        assert.match(error.message, pattern);
        return true;
      },
    );
  }
});
