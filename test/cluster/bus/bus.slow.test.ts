// The bus on NATS: the same calls as on one machine, between buses that are connected only by a real
// nats-server.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Consumer } from '../../../src/bus/index.js';
import { waitFor } from '../../support/index.js';
import { eventually, type Joined, joinBus, skip, startConfigured, startServer } from '../server.js';

const secret = 'nobody else knows this';

/** Waits until the servers have the subscriptions of these. */
async function known(...joined: readonly Joined[]): Promise<void> {
  for (const { bus } of joined) await bus.drained();
}

test('requests, answers, answers to answers, headers', { skip }, async (t) => {
  const server = await startServer(t);
  const [here, there] = [await joinBus(t, server), await joinBus(t, server)];
  there.bus.consumer<number>('double', async (message) => {
    const thanks = await message.replyAndRequest(2 * message.body);
    thanks.reply(`${thanks.body}!`);
  });
  there.bus.consumer('echo', (message) =>
    message.reply(message.body, { headers: message.headers }),
  );
  await known(there);
  const answer = await here.bus.request<number>('double', 21);
  assert.equal(answer.body, 42);
  assert.equal((await answer.replyAndRequest('thanks')).body, 'thanks!');
  const deep = { deep: [1, new Date(0), new Map([[1, 2n]])], bytes: new Uint8Array([1, 2]) };
  const echo = await here.bus.request('echo', deep, { headers: { 'with space': 'ü\n' } });
  assert.deepEqual([echo.body, echo.headers], [deep, { 'with space': 'ü\n' }]);
});

test('addresses of any kind', { skip }, async (t) => {
  const server = await startServer(t);
  const [here, there] = [await joinBus(t, server), await joinBus(t, server)];
  const addresses = [
    'news.uk',
    'news.*',
    'news.>',
    'a b',
    '..',
    '.a',
    'a.',
    'ü€😀',
    '%2E',
    '*',
    '\n',
  ];
  for (const each of addresses) there.bus.consumer(each, (message) => message.reply(each));
  await known(there);
  for (const each of addresses) assert.equal((await here.bus.request(each, 0)).body, each);
  await assert.rejects(here.bus.request('news.de', 0), { code: 'BUS_NO_HANDLERS' });
  const long = 'x'.repeat(2000);
  assert.throws(() => here.bus.send(long, 0), { code: 'OPTION_INVALID', message: /1024/ });
  assert.throws(() => here.bus.consumer(long, () => {}), { code: 'OPTION_INVALID' });
});

test('a publication reaches all consumers once, a sent message one', { skip }, async (t) => {
  const server = await startServer(t);
  const joined = [await joinBus(t, server), await joinBus(t, server), await joinBus(t, server)];
  const got: unknown[][] = [];
  for (const { bus } of joined) {
    const bodies: unknown[] = [];
    got.push(bodies);
    bus.consumer('news', (message) => {
      assert.equal(message.isAwaited, false);
      bodies.push(message.body);
    });
  }
  const [first, ...others] = joined;
  assert.ok(first !== undefined);
  await known(...joined);
  first.bus.publish('news', 'all', { headers: { a: 'b' } });
  await eventually(() => assert.deepEqual(got, [['all'], ['all'], ['all']]));
  for (let sent = 0; sent < 90; sent += 1) first.bus.send('news', sent);
  await eventually(() => assert.equal(got.flat().length, 93));
  for (const bodies of got) {
    assert.ok(bodies.length > 5, `${bodies.length} of 90`); // a third each, by chance
    const numbers = bodies.slice(1).map(Number);
    assert.deepEqual(
      numbers,
      [...numbers].sort((a, b) => a - b),
    ); // in order
  }
  assert.equal(first.bus.stats.sent, 91);
  assert.equal(others.length, 2);
});

test('failures of a request', { skip }, async (t) => {
  const server = await startServer(t);
  const [here, there] = [await joinBus(t, server), await joinBus(t, server)];
  there.bus.consumer('fail', (message) => message.fail(404, 'no such thing'));
  there.bus.consumer('throw', () => {
    throw new TypeError('out of order');
  });
  there.bus.consumer('never', () => {});
  there.bus.consumer('weak', (message) => {
    assert.throws(() => message.reply(new WeakMap()), { code: /^TRANSFER_/ });
    message.reply('could not');
  });
  await known(there);
  await assert.rejects(here.bus.request('fail', 1), { code: 'BUS_FAILED', failureCode: 404 });
  await assert.rejects(here.bus.request('throw', 1), {
    code: 'BUS_HANDLER_ERROR',
    message: /the consumer of throw threw: out of order/,
  });
  await assert.rejects(here.bus.request('never', 1, { timeoutMs: 20 }), { code: 'BUS_TIMEOUT' });
  await assert.rejects(here.bus.request('nobody', 1), { code: 'BUS_NO_HANDLERS' });
  await assert.rejects(here.bus.request('weak', new WeakMap()), { code: /^TRANSFER_/ });
  assert.equal((await here.bus.request('weak', 1)).body, 'could not');
  here.bus.send('nobody', 1);
  await eventually(() => assert.equal(here.bus.stats.undelivered, 1));
  here.bus.publish('nobody', 1);
  await eventually(() => assert.equal(here.bus.stats.undelivered, 2));
});

test('a message that is larger than the server takes is refused, also as an answer', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const [here, there] = [await joinBus(t, server), await joinBus(t, server)];
  there.bus.consumer<number>('bytes', (message) => message.reply(new Uint8Array(message.body)));
  await known(there);
  const large = new Uint8Array(2 ** 20);
  const tooLarge = { code: 'BUS_TOO_LARGE', message: /1048576/ };
  assert.throws(() => here.bus.send('bytes', large), tooLarge);
  assert.throws(() => here.bus.publish('bytes', large), tooLarge);
  await assert.rejects(here.bus.request('bytes', large), tooLarge);
  const answer = here.bus.request('bytes', 2 ** 20, { timeoutMs: 5000 });
  await assert.rejects(answer, { code: 'BUS_HANDLER_ERROR', message: /1048576/ });
  const fits = await here.bus.request<Uint8Array>('bytes', 2 ** 19);
  assert.equal(fits.body.byteLength, 2 ** 19);
});

test('errors and items that are larger than the server takes end at once', { skip }, async (t) => {
  const server = await startConfigured(t, 'max_payload: 4096');
  const [here, there] = [await joinBus(t, server), await joinBus(t, server)];
  const long = 'x'.repeat(10_000);
  there.bus.consumer('throw', () => {
    throw new Error(long);
  });
  const streams: Duplex[] = [];
  there.bus.acceptStreams('items', (stream) => void streams.push(stream));
  await known(there);
  await assert.rejects(here.bus.request('throw', 1, { timeoutMs: 2 ** 30 }), {
    code: 'BUS_HANDLER_ERROR',
    message: /^the consumer of throw threw: x+… \(\d+ more characters\)$/,
  });
  for (const end of [
    (stream: Duplex) => stream.write(long),
    (stream: Duplex) => stream.destroy(new Error(long)),
  ]) {
    const stream = await here.bus.openStream('items');
    const own = once(stream, 'error').then(([error]) => error);
    const accepted = await waitFor(() => streams.pop());
    const others = once(accepted, 'error').then(([error]) => error);
    end(stream);
    const error = await own;
    if (error.message !== long) assert.equal(error.code, 'BUS_TOO_LARGE');
    const { code, message } = await others;
    assert.equal(code, 'BUS_CONSUMER_LOST');
    assert.match(message, /^the other end was destroyed: (a message to .* bytes|x+… \(\d+ more)/);
  }
});

test('functions and classes travel between those with one secret', { skip }, async (t) => {
  const server = await startServer(t);
  const [here, there] = [
    await joinBus(t, server, { secret }),
    await joinBus(t, server, { secret }),
  ];
  class Point {
    readonly x: number;
    constructor(x: number) {
      this.x = x;
    }
    double(): Point {
      return new Point(2 * this.x);
    }
  }
  const factor = 2.1;
  there.bus.consumer<(n: number) => number>('apply', (message) => message.reply(message.body(20)));
  there.bus.consumer<Point>('point', (message) => message.reply(message.body.double()));
  await known(there);
  for (let again = 0; again < 2; again += 1) {
    assert.equal((await here.bus.request('apply', (n: number) => n * factor)).body, 42);
    const { body } = await here.bus.request('point', new Point(21));
    assert.ok(body instanceof Point);
    assert.equal(body.x, 42);
  }
});

test('without a secret functions and classes are refused by the sender', { skip }, async (t) => {
  const server = await startServer(t);
  const { bus } = await joinBus(t, server);
  bus.consumer('apply', (message) => message.reply(() => 1));
  await known({ bus, cluster: Object(undefined) });
  await assert.rejects(
    bus.request('apply', () => 1),
    { code: 'CLUSTER_UNSIGNED', message: /the message has functions or classes in it/ },
  );
  await assert.rejects(bus.request('apply', 1), { code: 'BUS_HANDLER_ERROR', message: /secret/ });
});

test('`local` keeps messages in the program, or prefers it', { skip }, async (t) => {
  const server = await startServer(t);
  const [here, there] = [await joinBus(t, server, { local: 'prefer' }), await joinBus(t, server)];
  there.bus.consumer('who', (message) => message.reply('there'));
  await known(there);
  assert.equal((await here.bus.request('who', 0)).body, 'there');
  await assert.rejects(here.bus.request('who', 0, { local: 'only' }), { code: 'BUS_NO_HANDLERS' });
  here.bus.consumer('who', (message) => message.reply('here'));
  await known(here);
  for (let at = 0; at < 20; at += 1) {
    assert.equal((await here.bus.request('who', 0)).body, 'here');
    assert.equal((await there.bus.request('who', 0, { local: 'prefer' })).body, 'there');
  }
  const answers = new Set<unknown>();
  await eventually(async () => {
    answers.add((await there.bus.request('who', 0)).body);
    assert.equal(answers.size, 2);
  });
});

test('a local consumer gets nothing from other machines', { skip }, async (t) => {
  const server = await startServer(t);
  const [here, there] = [await joinBus(t, server), await joinBus(t, server)];
  const got: unknown[] = [];
  here.bus.consumer('news', ({ body }) => void got.push(body), { isLocal: true });
  await known(here);
  await assert.rejects(there.bus.request('news', 'far'), { code: 'BUS_NO_HANDLERS' });
  there.bus.publish('news', 'far');
  await known(there);
  here.bus.publish('news', 'near');
  here.bus.send('news', 'near, too');
  await eventually(() => assert.deepEqual(got, ['near', 'near, too']));
});

test('a closing consumer loses no message', { skip }, async (t) => {
  const server = await startServer(t);
  const sender = await joinBus(t, server);
  const [first, second] = [await joinBus(t, server), await joinBus(t, server)];
  second.bus.consumer<number>('work', (message) => message.reply(message.body));
  await known(second);
  const rounds = Array.from({ length: 10 }, (_, at) => at);
  for (const _round of rounds) {
    const closing: Consumer = first.bus.consumer<number>('work', (message) =>
      message.reply(message.body),
    );
    await known(first);
    const asked = Array.from({ length: 100 }, (_, at) => sender.bus.request('work', at));
    await sleep(1);
    closing.close();
    const answers = await Promise.all(asked);
    assert.deepEqual(
      answers.map(({ body }) => body),
      Array.from({ length: 100 }, (_, at) => at),
    );
  }
});

test('streams between machines, and their end when one is gone', { skip }, async (t) => {
  const server = await startServer(t);
  const [here, there] = [await joinBus(t, server), await joinBus(t, server)];
  there.bus.acceptStreams('square', async (stream) => {
    for await (const n of stream) if (!stream.write(n * n)) await once(stream, 'drain');
    stream.end();
  });
  there.bus.acceptStreams('silent', (stream) => {
    stream.on('error', () => {});
  });
  await known(there);
  const stream = await here.bus.openStream('square');
  const count = 500;
  const writing = (async () => {
    for (let n = 0; n < count; n += 1) if (!stream.write(n)) await once(stream, 'drain');
    stream.end();
  })();
  const got: number[] = [];
  for await (const n of stream) got.push(n);
  await writing;
  assert.deepEqual(
    got,
    Array.from({ length: count }, (_, n) => n * n),
  );
  const silent = await here.bus.openStream('silent');
  await there.cluster.close(); // sends nothing on the streams
  const [error] = await once(silent, 'error');
  assert.equal(error.code, 'BUS_CONSUMER_LOST');
});

test('nodes emit join and leave of each other', { skip }, async (t) => {
  const server = await startServer(t);
  const first = await joinBus(t, server);
  const joined = once(first.cluster, 'join');
  const second = await joinBus(t, server);
  assert.deepEqual(await joined, [second.cluster.node]);
  await eventually(() => assert.deepEqual(second.cluster.nodes, [first.cluster.node]));
  assert.equal(first.cluster.node.pid, process.pid);
  const left = once(first.cluster, 'leave');
  await second.cluster.close();
  assert.deepEqual(await left, [second.cluster.node]);
  assert.deepEqual(first.cluster.nodes, []);
});

test('clusters of different names are separate', { skip }, async (t) => {
  const server = await startServer(t);
  const [red, blue] = [
    await joinBus(t, server, { name: 'red' }),
    await joinBus(t, server, { name: 'blue' }),
  ];
  red.bus.consumer('who', (message) => message.reply('red'));
  await known(red);
  await assert.rejects(blue.bus.request('who', 0), { code: 'BUS_NO_HANDLERS' });
  assert.deepEqual([red.cluster.nodes, blue.cluster.nodes], [[], []]);
});
