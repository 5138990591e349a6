// Clocks that are two minutes off: each call settles, with the clock in one sentence where it fails.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { NoticeLimit } from '../../src/cluster/bus/notice-limit.js';
import { Signer } from '../../src/cluster/bus/signature.js';
import type { NatsMessage } from '../../src/cluster/nats/nats.js';
import { noticeSubject, signatureOf, writeNotice } from '../../src/cluster/tasks/refused-tasks.js';
import { type BusMessage, Pool } from '../../src/public.js';
import { waitFor, withDeadline } from '../support/index.js';
import { callAll, type Settled } from './calls.js';
import { joinBus, refusals, skip, startServer, stranger } from './server.js';

const secret = 'nobody else knows this';
const skewMs = 120_000;
const settleMs = 60_000;

/** Checks an error: its code, and a text about the clock of this machine, which is so much off. */
function differs(settled: Settled, code: string, way: string): void {
  assert.ok(Array.isArray(settled), `it has the result ${settled}`);
  const [itsCode, text] = settled;
  assert.equal(itsCode, code, text);
  const clock = new RegExp(
    `the clock of this machine is 1[12]\\d s ${way} that of .*: synchronize`,
  );
  assert.match(text, clock);
}

for (const aheadMs of [skewMs, -skewMs]) {
  const title = `a clock that is ${aheadMs / 1000} s ahead: each call of and to that machine settles`;
  test(title, { skip }, async (t) => {
    const server = await startServer(t, ['-js']);
    const [caller, worker] = [
      await joinBus(t, server, { secret, name: 'caller' }),
      await joinBus(t, server, { secret, name: 'worker' }),
    ];
    caller.bus.consumer('echo', (message) => message.reply(message.body));
    await caller.cluster.lendWorkers(1, { durable: true });
    await caller.bus.drained();
    const skewed = fork(new URL('./apps/skewed.js', import.meta.url), [
      server.url,
      secret,
      String(aheadMs),
    ]);
    t.after(() => skewed.kill('SIGKILL'));
    await once(skewed, 'message');
    const [[ofSkewed], toSkewed] = await withDeadline(
      Promise.all([once(skewed, 'message'), callAll(worker)]),
      settleMs,
      'the calls',
    );
    const [its, ours] = aheadMs > 0 ? ['ahead of', 'behind'] : ['behind', 'ahead of'];
    differs(ofSkewed.request, 'CLUSTER_REFUSED', its);
    differs(ofSkewed.plain, 'WORKER_START_FAILED', its);
    differs(ofSkewed.durable, 'CLUSTER_REFUSED', its);
    differs(ofSkewed.named, 'CLUSTER_REFUSED', its);
    differs(toSkewed.request, 'CLUSTER_REFUSED', ours);
    differs(toSkewed.plain, 'WORKER_START_FAILED', ours);
    // The clock of the server counts for durable tasks, and not that of the worker.
    assert.deepEqual([toSkewed.durable, toSkewed.named], [42, 42]);
  });
}

test('a notice settles the task that it names alone, and none without the secret', {
  skip,
}, async (t) => {
  const server = await startServer(t, ['-js']);
  const tool = await stranger(t, server.url);
  const frames: Uint8Array[] = [];
  tool.subscribe('manycore.tasks.>', { callback: (_error, { data }) => frames.push(data) });
  await tool.flush();
  const { cluster } = await joinBus(t, server, { secret });
  const why = refusals(t);
  await using pool = new Pool({ cluster });
  const call = pool.with({ durable: true }).run(() => 1);
  const rejected = assert.rejects(call, { code: 'CLUSTER_REFUSED', message: /is 400 s behind/ });
  await waitFor(() => frames.length === 1);
  const [frame] = frames;
  assert.ok(frame);
  const signature = signatureOf(frame);
  const subject = noticeSubject('manycore');
  const signer = new Signer(secret, 'manycore');
  const stranded = new Signer('another secret', 'manycore');
  tool.publish(subject, writeNotice(stranded, subject, { signature, seq: 1, seconds: 100 }));
  tool.publish(subject, writeNotice(signer, subject, { signature: 'other', seq: 1, seconds: 200 }));
  // The frame was recorded, and stored again.
  tool.publish(subject, writeNotice(signer, subject, { signature, seq: 2, seconds: 300 }));
  tool.publish(subject, writeNotice(signer, subject, { signature, seq: 1, seconds: 400 }));
  await rejected;
  assert.equal(why.length, 1);
  assert.match(why[0] ?? '', /not signed with the secret/);
});

test('a request that is recorded and sent again later is refused, and still gets its answer', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const [here, there] = [
    await joinBus(t, server, { secret }),
    await joinBus(t, server, { secret }),
  ];
  const got: BusMessage[] = [];
  there.bus.consumer('later', (message) => got.push(message));
  await there.bus.drained();
  const tool = await stranger(t, server.url);
  const recorded: NatsMessage[] = [];
  const notices: NatsMessage[] = [];
  const subject = 'manycore.send.later';
  tool.subscribe(subject, { callback: (_error, message) => recorded.push(message) });
  await tool.flush();
  const answer = here.bus.request('later', 1);
  await waitFor(() => got.length === 1 && recorded.length === 1);
  const [{ data, reply } = { data: new Uint8Array() }] = recorded;
  const why = refusals(t);
  const now = Date.now.bind(Date);
  t.mock.method(Date, 'now', () => now() + skewMs);
  assert.ok(reply);
  tool.subscribe(reply, { callback: (_error, message) => notices.push(message) });
  await tool.flush();
  tool.publish(subject, data, { reply });
  await waitFor(() => why.some((each) => /12\d s old/.test(each)));
  await waitFor(() => why.some((each) => /though the clocks agree/.test(each)));
  // That notice, sent again when it is old enough to look like one of another clock.
  t.mock.method(Date, 'now', () => now() + skewMs + 45_000);
  tool.publish(reply, notices[0]?.data ?? new Uint8Array());
  await waitFor(() => why.some((each) => /was sent again/.test(each)));
  got[0]?.reply('answer');
  assert.equal((await answer).body, 'answer');
});

test('as many notices are sent in a second as are allowed, whatever comes', (t) => {
  let now = 5000;
  t.mock.method(Date, 'now', () => now);
  const limit = new NoticeLimit();
  const sent = () => Array.from({ length: 1000 }, () => limit.take()).filter(Boolean).length;
  assert.equal(sent(), 100);
  now += 999;
  assert.equal(sent(), 0);
  now += 1;
  assert.equal(sent(), 100);
  now -= 3600_000; // a clock that is set
  assert.equal(sent(), 100);
});
