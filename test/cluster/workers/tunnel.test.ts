// The bytes of a tunnel, over a network that loses, duplicates and reorders frames.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Signer } from '../../../src/cluster/bus/signature.js';
import { Tunnel } from '../../../src/cluster/workers/tunnel.js';
import { random, waitFor } from '../../support/index.js';
import { LossyNetwork } from '../lossy.js';

const signer = new Signer('nobody else knows this', 'name');

function openTunnel(t: TestContext, network: LossyNetwork): [Tunnel, Tunnel] {
  const open = (own: string): Tunnel => {
    const connection = network.connect(50_000);
    const tunnel = new Tunnel({ connection, signer, own, onControl: () => {} });
    t.after(() => tunnel.destroy());
    return tunnel;
  };
  const ends: [Tunnel, Tunnel] = [open('one'), open('other')];
  ends[0].connect('other', true);
  ends[1].connect('one', true);
  return ends;
}

function digest(chunks: readonly Uint8Array[]): string {
  const hash = createHash('sha256');
  for (const each of chunks) hash.update(each);
  return hash.digest('hex');
}

/** Simulates a blocked event loop: the clock advances, and timers fire once, late. */
function blockLoop(t: TestContext, ms: number): void {
  const now = Date.now.bind(Date);
  t.mock.method(Date, 'now', () => now() + ms);
}

test('a side whose own event loop was blocked does not give up the other', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const network = new LossyNetwork();
  const [one, other] = openTunnel(t, network);
  await waitFor(() => network.isIdle);
  blockLoop(t, 3_600_000);
  t.mock.timers.tick(1000);
  await waitFor(() => network.isIdle);
  t.mock.timers.tick(1000);
  assert.deepEqual([one.errored, other.errored], [null, null]);
  one.write('still there');
  const [bytes] = await once(other, 'data');
  assert.equal(String(bytes), 'still there');
});

test('an end that is silent for long is given up', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval', 'Date'] });
  const network = new LossyNetwork();
  const ends = openTunnel(t, network);
  await waitFor(() => network.isIdle);
  network.copies = () => 0;
  const failed = ends.map((end) => once(end, 'error'));
  t.mock.timers.tick(60_000);
  for (const [error] of await Promise.all(failed)) assert.equal(error.code, 'CLUSTER_WORKER_LOST');
});

test('an end that the server reports as absent is given up sooner', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval', 'Date'] });
  const network = new LossyNetwork();
  const [one, other] = openTunnel(t, network);
  await waitFor(() => network.isIdle);
  one.on('error', () => {});
  other.destroy(); // it has no subscriber any more
  for (let second = 0; second < 10; second += 1) {
    t.mock.timers.tick(1000);
    await waitFor(() => network.isIdle);
  }
  assert.equal(Object(one.errored).code, 'CLUSTER_WORKER_LOST');
});

for (let run = 1; run <= 5; run += 1) {
  test(`with any fate of frames all bytes arrive in order, and the end: run ${run}`, async (t) => {
    const { integer, next, bytes } = random(t);
    t.mock.timers.enable({ apis: ['setInterval', 'Date'] });
    const network = new LossyNetwork();
    const ends = openTunnel(t, network);
    const loss = next() * 0.4;
    network.copies = () => (next() < loss ? 0 : next() < 0.2 ? 2 : 1);
    network.next = (count) => (next() < 0.3 ? integer(0, Math.max(count, 1)) : 0);
    const block = bytes(200_000);
    const given = ends.map(() => {
      const chunks: Uint8Array[] = [];
      for (let sizeBytes = 0; sizeBytes < 3_000_000; ) {
        const start = integer(0, block.byteLength - 1);
        const chunk = block.subarray(start, integer(start + 1, block.byteLength));
        chunks.push(chunk);
        sizeBytes += chunk.byteLength;
      }
      return chunks;
    });
    const write = async (end: Tunnel, chunks: readonly Uint8Array[]): Promise<void> => {
      for (const each of chunks) {
        await new Promise<void>((resolve, reject) => {
          end.write(each, (error) => (error ? reject(error) : resolve()));
        });
      }
      await finished(end.end(), { readable: false });
    };
    const read = async (end: Tunnel): Promise<Uint8Array[]> => {
      const got: Uint8Array[] = [];
      for await (const chunk of end.iterator({ destroyOnReturn: false })) {
        got.push(chunk);
        for (let turns = integer(0, 4); turns > 0; turns -= 1) await turn();
      }
      return got;
    };
    let isOver = false;
    const passing = Promise.all([
      Promise.all(ends.map(read)),
      ...ends.map((end, at) => write(end, given[at] ?? [])),
    ]).finally(() => {
      isOver = true;
    });
    passing.catch(() => {}); // it is awaited below
    for (let ticks = 0; !isOver; ) {
      await turn();
      if (!network.isIdle) continue;
      ticks += 1;
      assert.ok(ticks < 20_000, `after ${ticks} seconds not all has come`);
      t.mock.timers.tick(1000);
    }
    const [got] = await passing;
    assert.deepEqual(got.map(digest), [...given].reverse().map(digest));
  });
}
