// Machines that are cut off: no packet reaches them or comes from them, silently. Each test has a network
// of its own, with a real nats-server in it.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { childrenOf } from '../support/index.js';
import { type Member, startMember } from './member.js';
import { openNetwork, skip } from './network.js';
import { eventually } from './server.js';

/**
 * Server and nodes detect a cut within some seconds. Not faster: a busy machine may delay a program for a
 * second. A server before 2.10 does not ping clients to which it has sent within the interval, so the
 * interval must be shorter than the period of announcements.
 */
const quickServer = ['ping_interval: "500ms"', 'ping_max: 4'];
const pingInterval = 1000;
/** Timeout where an end waits twenty seconds for the other. */
const longMs = 60_000;
const secret = 'nobody else knows this';

// The tests mostly wait.
describe('partitions', { concurrency: 3 }, () => {
  test('a node that is cut off gets no requests until it is back', {
    skip,
  }, async (t) => {
    const [hub, far] = await openNetwork(t, 2);
    assert.ok(hub !== undefined && far !== undefined);
    const nats = { servers: await hub.startServer(quickServer), pingInterval };
    const here = await startMember(hub, { nats });
    const near = await startMember(hub, { nats });
    const away = await startMember(far, { nats });
    for (const member of [near, away]) {
      await member.ask(async ({ bus }) => {
        bus.consumer('who', (message) => message.reply(process.pid));
        await bus.drained();
      });
    }
    await away.ask(async ({ bus }) => {
      bus.consumer('only', (message) => message.reply('away'));
      await bus.drained();
    });
    const both = [near.pid, away.pid].sort();
    assert.deepEqual(await whoAnswers(here), both);

    far.cut();
    const askOnly = () => here.ask(({ bus }) => bus.request('only', 0, { timeoutMs: 200 }));
    await assert.rejects(askOnly(), { code: 'BUS_TIMEOUT' }); // not detected yet
    // Requests would suppress the server's pings: it takes its own messages for a sign of life (before
    // 2.10).
    await eventually(async () => assert.equal(await here.count('leave', away.pid), 1));
    await assert.rejects(askOnly(), { code: 'BUS_NO_HANDLERS' });
    assert.deepEqual(await whoAnswers(here), [near.pid]);
    await eventually(async () => assert.equal(await away.count('lost'), 1));

    far.heal();
    await eventually(async () => assert.equal(await away.count('back'), 1));
    await eventually(async () => assert.equal(await here.count('join', away.pid), 2));
    await eventually(async () => assert.deepEqual(await whoAnswers(here), both));
    assert.equal(await here.ask(async ({ bus }) => (await bus.request('only', 0)).body), 'away');
    assert.equal(await here.count('lost'), 0);
  });

  test('messages of a node that is cut off wait, bounded, and arrive in order', {
    skip,
  }, async (t) => {
    const [hub, far] = await openNetwork(t, 2);
    assert.ok(hub !== undefined && far !== undefined);
    const nats = { servers: await hub.startServer(quickServer), pingInterval };
    const here = await startMember(hub, { nats });
    const away = await startMember(far, { nats });
    await here.ask(async ({ bus, kept }) => {
      kept['got'] = [];
      bus.consumer('count', ({ body }) => void kept['got'].push(body));
      await bus.drained();
    });
    const got = (): Promise<number[]> => here.ask(({ kept }) => kept['got']);
    await away.ask(async ({ bus }) => {
      for (let sent = 0; sent < 100; sent += 1) bus.send('count', sent);
      await bus.drained();
    });

    far.cut();
    await away.ask(({ bus }) => {
      for (let sent = 100; sent < 200; sent += 1) bus.send('count', sent); // to a server that seems alive
    });
    await eventually(async () => assert.equal(await away.count('lost'), 1));
    const [code, sent] = await away.ask(({ bus }) => {
      let at = 200;
      try {
        for (; at < 20_000; at += 1) if (bus.send('count', at)) return ['it goes', at] as const;
        return ['all wait', at] as const;
      } catch (error) {
        return [String(Object(error).code), at] as const;
      }
    });
    assert.deepEqual([code, sent], ['BUS_FULL', 10_200]);
    const unconfirmed = Number((await away.told('lost'))[0]?.unconfirmed);
    assert.ok(unconfirmed >= 100, `${unconfirmed} are told`);

    far.heal();
    await eventually(async () => assert.equal((await got()).at(-1), sent - 1));
    const numbers = await got();
    assert.deepEqual(
      numbers.slice(0, 100),
      Array.from({ length: 100 }, (_, at) => at),
    );
    assert.deepEqual(
      numbers,
      [...new Set(numbers)].sort((a, b) => a - b),
    );
    assert.ok(numbers.length >= sent - unconfirmed);
    assert.equal(await away.ask(({ bus }) => bus.stats.undelivered), 0);
  });

  test('a server that does not notice: the node has left, and a stream ends at both ends', {
    skip,
  }, async (t) => {
    const [hub, far] = await openNetwork(t, 2);
    assert.ok(hub !== undefined && far !== undefined);
    const nats = { servers: await hub.startServer(), pingInterval };
    const here = await startMember(hub, { nats });
    const away = await startMember(far, { nats });
    await openStream(here, away);
    far.cut();
    await here.ask(({ kept }) => void kept['stream'].write('more'));
    await streamEnded(here, away);
    await eventually(async () => assert.equal(await here.count('leave', away.pid), 1));
    assert.equal(await here.count('lost'), 0);
  });

  test('a pool whose node is cut off: its tasks run elsewhere, and its processes end', {
    skip,
  }, async (t) => {
    const [hub, far] = await openNetwork(t, 2);
    assert.ok(hub !== undefined && far !== undefined);
    const nats = { servers: await hub.startServer(quickServer), pingInterval };
    const owner = await startMember(hub, { nats, secret });
    const near = await startMember(hub, { nats, secret });
    const away = await startMember(far, { nats, secret });
    for (const node of [near, away]) await node.ask(({ cluster }) => void cluster.lendWorkers(1));
    await startTasks(owner, 100, { retry: 3 });
    await eventually(async () => assert.equal(new Set(await parentsOf(owner)).size, 2));
    assert.equal((await childrenOf(away.pid)).length, 1);

    far.cut();
    const all = Array.from({ length: 100 }, (_, at) => at);
    await eventually(async () => assert.deepEqual(await settledOf(owner), all));
    await eventually(() => assert.deepEqual(childrenOf(away.pid), []), longMs);

    far.heal();
    await eventually(async () => assert.equal(await away.count('back'), 1));
    await startTasks(owner, 100, { retry: 3 });
    await eventually(async () => assert.equal(new Set(await parentsOf(owner)).size, 2));
  });

  test('a pool whose node is cut off for a short time loses nothing', { skip }, async (t) => {
    const [hub, far] = await openNetwork(t, 2);
    assert.ok(hub !== undefined && far !== undefined);
    const nats = { servers: await hub.startServer(), pingInterval };
    const owner = await startMember(hub, { nats, secret });
    const away = await startMember(far, { nats, secret });
    await away.ask(({ cluster }) => void cluster.lendWorkers(2));
    await startTasks(owner, 100, { retry: 0 });
    await eventually(async () => assert.ok((await settledOf(owner)).length > 10));
    const before = childrenOf(away.pid).map(({ pid }) => pid);
    far.cut();
    await eventually(async () => assert.equal(await away.count('lost'), 1));
    far.heal();
    const all = Array.from({ length: 100 }, (_, at) => at);
    await eventually(async () => assert.deepEqual(await settledOf(owner), all));
    assert.deepEqual(
      childrenOf(away.pid).map(({ pid }) => pid),
      before,
    );
  });

  test('two servers that lose each other: both halves continue, and join again', {
    skip,
  }, async (t) => {
    const [left, right] = await openNetwork(t, 2);
    assert.ok(left !== undefined && right !== undefined);
    const routes = `routes: [nats://${left.address}:6222, nats://${right.address}:6222]`;
    const config = [...quickServer, `cluster { name: both, listen: "0.0.0.0:6222", ${routes} }`];
    const members: Member[] = [];
    for (const machine of [left, right]) {
      const nats = { servers: await machine.startServer(config), pingInterval };
      members.push(await startMember(machine, { nats }));
    }
    const [one, other] = members;
    assert.ok(one !== undefined && other !== undefined);
    for (const member of members) {
      await member.ask(async ({ bus, kept }) => {
        kept['news'] = [];
        bus.consumer('who', (message) => message.reply(process.pid));
        bus.consumer('news', ({ body }) => void kept['news'].push(body));
        await bus.drained();
      });
    }
    const both = [one.pid, other.pid].sort();
    for (const member of members) {
      await eventually(async () => assert.deepEqual(await whoAnswers(member), both));
    }
    await openStream(one, other);

    right.cut();
    await eventually(async () => assert.equal(await one.count('leave', other.pid), 1));
    await eventually(async () => assert.equal(await other.count('leave', one.pid), 1));
    await streamEnded(one, other);
    for (const member of members) {
      await eventually(async () => assert.deepEqual(await whoAnswers(member), [member.pid]));
      await member.ask(({ bus }) => bus.publish('news', process.pid));
    }

    right.heal();
    for (const member of members) {
      const nodes = (): Promise<number> => member.ask(({ cluster }) => cluster.nodes.length);
      await eventually(async () => assert.equal(await nodes(), 1));
    }
    for (const member of members) {
      await eventually(async () => assert.deepEqual(await whoAnswers(member), both));
      assert.deepEqual(await member.ask(({ kept }) => kept['news']), [member.pid]);
      assert.equal(await member.count('lost'), 0); // of a server of its own
    }
  });
});

/** Returns the programs that answer, of the consumers of `who`, the smallest number first. */
function whoAnswers(member: Member): Promise<number[]> {
  return member.ask(async ({ bus }) => {
    const pids = new Set<number>();
    for (let asked = 0; asked < 30; asked += 1) {
      pids.add((await bus.request<number>('who', 0, { timeoutMs: 5000 })).body);
    }
    return [...pids].sort();
  });
}

/** Keeps the code with which each end closes. */
async function openStream(from: Member, to: Member): Promise<void> {
  await to.ask(async ({ bus, kept }) => {
    bus.acceptStreams('lines', (stream) => {
      stream.resume();
      stream.on('error', (error) => {
        kept['ended'] = Object(error).code;
      });
    });
    await bus.drained();
  });
  await from.ask(async ({ bus, kept }) => {
    const stream = await bus.openStream('lines');
    stream.on('error', (error) => {
      kept['ended'] = Object(error).code;
    });
    stream.write('first');
    kept['stream'] = stream;
  });
}

async function streamEnded(...ends: readonly Member[]): Promise<void> {
  for (const member of ends) {
    const code = (): Promise<unknown> => member.ask(({ kept }) => kept['ended']);
    await eventually(async () => assert.equal(await code(), 'BUS_CONSUMER_LOST'), longMs);
  }
}

/** Runs tasks of 50 ms in a pool; keeps which have settled, each with the parent of its worker. */
function startTasks(owner: Member, count: number, options: { retry: number }): Promise<void> {
  return owner.ask(
    ({ cluster, Pool, kept }, tasks, { retry }) => {
      kept['pool'] ??= new Pool({ cluster, size: { min: 2, max: 2 } });
      kept['settled'] = [];
      const run = async (at: number): Promise<void> => {
        const parent = await kept['pool'].with({ retry }).run(async () => {
          await new Promise((resolve) => setTimeout(resolve, 50));
          return process.ppid;
        });
        kept['settled'].push({ at, parent });
      };
      for (let at = 0; at < tasks; at += 1) {
        run(at).catch((error) => kept['settled'].push({ at: error.stack }));
      }
    },
    count,
    options,
  );
}

/** Returns them in order of their numbers. */
async function settledOf(owner: Member): Promise<unknown[]> {
  const settled: { at: number }[] = await owner.ask(({ kept }) => kept['settled']);
  return settled.map(({ at }) => at).sort((a, b) => a - b);
}

async function parentsOf(owner: Member): Promise<unknown[]> {
  const settled: { parent: unknown }[] = await owner.ask(({ kept }) => kept['settled']);
  return settled.map(({ parent }) => parent);
}
