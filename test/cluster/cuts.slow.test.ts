// Traffic in both directions while a machine is cut off, for a short and a long time, and while its network loses every
// fifth packet: each request settles, nothing arrives twice or out of order, and all work again by themselves.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Member, startMember } from './member.js';
import { cannotLose, type Machine, openNetwork, skip } from './network.js';
import { eventually } from './server.js';

const longMs = 60_000;
const secret = 'nobody else knows this';

/** Ways to end a request whose consumer cannot be reached. */
const known = ['answered', 'BUS_TIMEOUT', 'BUS_NO_HANDLERS', 'BUS_CONSUMER_LOST', 'BUS_FULL'];

interface Fault {
  readonly what: string;
  readonly skip: string | false;
  readonly server: readonly string[];
  /** Resolves when the fault is to end. */
  readonly during: (far: Machine, ends: readonly [Member, Member]) => Promise<unknown>;
}

const quickServer = ['ping_interval: "500ms"', 'ping_max: 4'];

const faults: readonly Fault[] = [
  {
    what: 'a cut of 2 s',
    skip,
    server: [],
    during: async (far) => {
      far.cut();
      await sleep(2000);
    },
  },
  {
    what: 'a cut of 2 s that the server detects',
    skip,
    server: ['ping_interval: "200ms"', 'ping_max: 2'],
    during: async (far) => {
      far.cut();
      await sleep(2000);
    },
  },
  {
    what: 'a cut of 30 s',
    skip,
    server: quickServer,
    during: async (far, [, away]) => {
      far.cut();
      await sleep(30_000);
      // Unanswered pings end the connection, although all buffers are full.
      await eventually(async () => assert.ok((await away.count('lost')) > 0));
    },
  },
  {
    what: 'a loss of 20 % of the packets',
    skip: skip || cannotLose(),
    server: quickServer,
    during: async (far, ends) => {
      far.lose(0.2);
      const before = await Promise.all(ends.map(answersOf));
      await sleep(10_000);
      await eventually(async () => {
        const answers = await Promise.all(ends.map(answersOf));
        for (const [at, count] of answers.entries()) assert.ok(count > (before[at] ?? 0) + 20);
      }, longMs);
    },
  },
];

// The tests mostly wait.
describe('cuts under traffic', { concurrency: 4 }, () => {
  for (const { what, skip: why, server, during } of faults) {
    test(`${what}: requests settle, messages stay in order, all is back`, {
      skip: why,
    }, async (t) => {
      const [hub, far] = await openNetwork(t, 2);
      assert.ok(hub !== undefined && far !== undefined);
      const nats = { servers: await hub.startServer(server), pingInterval: 1000 };
      const here = await startMember(hub, { nats, secret });
      const away = await startMember(far, { nats, secret });
      const ends = [here, away] as const;
      for (const [at, end] of ends.entries()) await receive(end, at);
      for (const [at, end] of ends.entries()) await begin(end, 1 - at);
      const goOn = async (): Promise<void> => {
        const before = await Promise.all(ends.map(answersOf));
        await eventually(async () => {
          const answers = await Promise.all(ends.map(answersOf));
          for (const [at, count] of answers.entries()) assert.ok(count > (before[at] ?? 0) + 50);
        }, longMs);
      };
      await goOn();
      await during(far, ends);
      far.heal();
      await goOn();
      const sent: number[] = [];
      for (const end of ends) sent.push(await stop(end));
      for (const [at, end] of ends.entries()) {
        const got = (): Promise<number[]> => end.ask(({ kept }) => kept['got']);
        await eventually(async () => assert.equal((await got()).at(-1), sent[1 - at]), longMs);
        const numbers = await got();
        assert.deepEqual(
          numbers,
          [...new Set(numbers)].sort((a, b) => a - b),
          'twice or out of order',
        );
        const { wrong, outcomes, open } = await end.ask(({ kept }) => kept['asked']);
        t.diagnostic(`${at}: ${JSON.stringify(outcomes)}, ${numbers.length} of ${sent[1 - at]}`);
        assert.deepEqual([wrong, open], [0, 0]);
        for (const outcome of Object.keys(outcomes)) assert.ok(known.includes(outcome), outcome);
      }
    });
  }
});

/** Consumes at this end what the other one sends and asks. */
function receive(end: Member, number: number): Promise<void> {
  return end.ask(async ({ bus, kept }, own) => {
    kept['got'] = [];
    bus.consumer(`echo ${own}`, (message) => message.reply(message.body));
    bus.consumer(`count ${own}`, ({ body }) => void kept['got'].push(body));
    await bus.drained();
  }, number);
}

/** Begins to send numbers to the other end, one by one, and to ask it. */
function begin(end: Member, other: number): Promise<void> {
  return end.ask(({ bus, kept }, to) => {
    const asked = { wrong: 0, open: 0, outcomes: {} as Record<string, number> };
    kept['asked'] = asked;
    kept['sent'] = 0;
    const ask = async (number: number): Promise<void> => {
      asked.open += 1;
      let outcome = 'answered';
      try {
        const { body } = await bus.request(`echo ${to}`, number, { timeoutMs: 1000 });
        if (body !== number) asked.wrong += 1;
      } catch (error) {
        outcome = String(Object(error).code);
      }
      asked.outcomes[outcome] = (asked.outcomes[outcome] ?? 0) + 1;
      asked.open -= 1;
    };
    kept['timer'] = setInterval(() => {
      kept['sent'] += 1;
      bus.send(`count ${to}`, kept['sent']);
      void ask(kept['sent']);
    }, 10);
  }, other);
}

function answersOf(end: Member): Promise<number> {
  return end.ask(({ kept }) => kept['asked'].outcomes.answered ?? 0);
}

/** Ends the traffic of this end; returns the last number that it has sent. */
async function stop(end: Member): Promise<number> {
  const last: Promise<number> = end.ask(async ({ kept }) => {
    clearInterval(kept['timer']);
    return kept['sent'];
  });
  await eventually(
    async () => assert.equal(await end.ask(({ kept }) => kept['asked'].open), 0),
    longMs,
  );
  return await last;
}
