import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { acceptChannel, offerChannel } from '../../src/channels/index.js';
import { hasCode } from '../../src/errors.js';

test('a kind that cannot reach this kind of worker is refused', () => {
  const unavailable = (error: unknown): boolean => hasCode(error, 'CHANNEL_UNAVAILABLE');
  assert.throws(() => offerChannel('socket', { worker: 'thread', spin: false }), unavailable);
  assert.throws(() => offerChannel('memory', { worker: 'process', spin: false }), unavailable);
});

test('an invalid ticket is refused', () => {
  const { port } = { port: {} };
  for (const ticket of [
    undefined,
    null,
    1,
    'socket',
    {},
    { kind: 'pipe' },
    { kind: 'memory', port },
  ]) {
    assert.throws(
      () => acceptChannel(ticket),
      (error) => hasCode(error, 'WORKER_PROTOCOL'),
      String(ticket),
    );
  }
});

test('a socket ticket without a socket is refused', () => {
  const index = new URL('../../src/channels/index.js', import.meta.url).href;
  const script = `
    import { acceptChannel } from ${JSON.stringify(index)};
    try { acceptChannel({ kind: 'socket' }); } catch (error) { console.log(error.code); }`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    // The descriptor is there and is a file: /dev/null.
    stdio: ['ignore', 'pipe', 'inherit', 'ignore'],
    timeout: 30_000,
  });
  assert.equal(stdout, 'CHANNEL_UNAVAILABLE\n');
});

test('a socket offer is not opened without its pipe', () => {
  const offer = offerChannel('socket', { worker: 'process', spin: false });
  assert.throws(
    () => offer.open(undefined),
    (error) => hasCode(error, 'CHANNEL_UNAVAILABLE'),
  );
  offer.discard();
});

test('an offer that is discarded leaves nothing that keeps the process alive', () => {
  const index = new URL('../../src/channels/index.js', import.meta.url).href;
  const script = `
    import { offerChannel } from ${JSON.stringify(index)};
    offerChannel('memory', { worker: 'thread', spin: false }).discard();
    offerChannel('socket', { worker: 'process', spin: false }).discard();`;
  const { status } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    timeout: 30_000,
  });
  assert.equal(status, 0);
});
