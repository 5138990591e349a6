// Groups: units that were deployed together restart together, by their strategy, and are given up together.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type {
  Deployment,
  DeploymentGroup,
  GroupMember,
  InstanceEnd,
  Loops,
  RestartStrategy,
  UnitContext,
} from '../../src/public.js';
import { deployAll } from '../../src/public.js';
import { waitFor } from '../support/index.js';
import { startLoops } from './loops.js';

const longMs = 60_000;

/** Publishes its starts and stops as `seen`, and ends its process by request. */
function unit({ bus, name, config }: UnitContext): () => unknown {
  bus.publish('seen', `+${name}`);
  bus.consumer(`kill ${name}`, () => process.kill(process.pid, 'SIGKILL'));
  bus.consumer(`exit ${name}`, () => process.exit(3));
  bus.consumer(`block ${name}`, () => {
    for (;;);
  });
  bus.consumer(name, (message) => message.reply(process.pid));
  return () => {
    bus.publish('seen', `-${name}`);
    if (config === 'stubborn') return new Promise(() => {});
    return undefined;
  };
}

/** Members of these names, each alone in its process where there are as many. */
function named(...names: string[]): GroupMember[] {
  return names.map((name) => ({ unit, name }));
}

function noteSeen(t: TestContext, loops: Loops): unknown[] {
  const seen: unknown[] = [];
  const consumer = loops.bus.consumer('seen', ({ body }) => void seen.push(body));
  t.after(() => consumer.close());
  return seen;
}

async function states(group: DeploymentGroup): Promise<string[]> {
  const all = await Promise.all(group.deployments.map((each) => each.status()));
  return all.flat().map(({ state }) => state);
}

async function allRun(group: DeploymentGroup): Promise<boolean> {
  return (await states(group)).every((state) => state === 'running');
}

function memberOf(group: DeploymentGroup, name: string): Deployment {
  const member = group.deployments.find((each) => each.name === name);
  assert.ok(member);
  return member;
}

/** The ends of all instances of the group, as reasons by name. */
function endsOf(loops: Loops, group: DeploymentGroup): Map<string, string[]> {
  const ends = new Map(group.deployments.map(({ name }) => [name, [] as string[]]));
  const note = ({ name, reason }: InstanceEnd): void => void ends.get(name)?.push(reason);
  for (const each of group.deployments) loops.bus.monitor(each, note);
  return ends;
}

interface Case {
  readonly strategy: RestartStrategy;
  /** Starts and stops after the loss of `b`. */
  readonly seen: readonly string[];
  readonly ends: readonly (readonly string[])[];
}

const cases: readonly Case[] = [
  { strategy: 'one-for-one', seen: ['+b'], ends: [[], ['lost'], []] },
  { strategy: 'rest-for-one', seen: ['-c', '+b', '+c'], ends: [[], ['lost'], ['restarted']] },
  {
    strategy: 'one-for-all',
    seen: ['-c', '-a', '+a', '+b', '+c'],
    ends: [['restarted'], ['lost'], ['restarted']],
  },
];

for (const { strategy, seen: wanted, ends: wantedEnds } of cases) {
  test(`${strategy}: the loss of a process, of a thread and by a blocked loop`, {
    timeout: longMs,
  }, async (t) => {
    const loops = startLoops(t, { processes: 4, blockedTimeoutMs: 3000 });
    const seen = noteSeen(t, loops);
    const group = await loops.deployAll(named('a', 'b', 'c'), { strategy });
    await waitFor(() => seen.length === 3);
    assert.deepEqual(seen.splice(0), ['+a', '+b', '+c']);
    for (const way of ['kill', 'exit', 'block']) {
      const ends = endsOf(loops, group);
      loops.bus.send(`${way} b`, 0);
      await waitFor(() => seen.length >= wanted.length && [...ends.values()][1]?.length === 1);
      await waitFor(() => allRun(group));
      assert.deepEqual(seen.splice(0), wanted, way);
      assert.deepEqual([...ends.values()], wantedEnds, way);
      for (const name of ['a', 'b', 'c']) await loops.bus.request(name, 0);
    }
    await Promise.all([group.undeploy(), group.undeploy(), group.ended]);
    assert.deepEqual(seen, ['-c', '-b', '-a']);
    assert.deepEqual(loops.deployments, []);
  });
}

test('too many failures give the whole group up', { timeout: longMs }, async (t) => {
  const loops = startLoops(t, { processes: 4 }); // each alone in its process
  const other = await loops.deploy(unit, { name: 'other' });
  for (const strategy of ['one-for-one', 'one-for-all', 'rest-for-one'] as const) {
    const members = named('a', 'b', 'c');
    const group = await loops.deployAll(members, { strategy, restarts: { max: 1 } });
    const ends = endsOf(loops, group);
    const pidOfB = async (): Promise<unknown> =>
      (await loops.bus.request('b', 0).catch(() => undefined))?.body;
    const first = await pidOfB();
    loops.bus.send('exit b', 0);
    await waitFor(async () => ![undefined, first].includes(await pidOfB()));
    await waitFor(() => allRun(group));
    loops.bus.send('exit b', 0);
    await assert.rejects(group.ended, {
      code: 'UNIT_FAILED',
      message: /^the group of a, b, c was given up after .* the last one of b: b ended .* again$/,
    });
    assert.deepEqual(await states(group), ['failed', 'failed', 'failed']);
    for (const each of group.deployments) {
      await assert.rejects(each.ended, { code: 'UNIT_FAILED' });
    }
    await waitFor(() => [...ends.values()].every((reasons) => reasons.at(-1) === 'failed'));
    await loops.bus.request('other', 0);
    // A member that was given up is on its own.
    await memberOf(group, 'a').scale(0);
    await memberOf(group, 'b').scale(1);
    await waitFor(async () => (await pidOfB()) !== undefined);
    await group.undeploy();
    assert.deepEqual(loops.deployments.length, 1);
  }
  await other.undeploy();
});

/** A unit whose start fails, or waits, for as long as the program sets it to. */
async function picky(context: UnitContext): Promise<() => unknown> {
  const { body } = await context.bus.request<string>('may start', context.name);
  if (body !== 'yes') throw new Error(body);
  return unit(context);
}

test('a failed start, and a loss during the restart, join it', { timeout: longMs }, async (t) => {
  const loops = startLoops(t, { processes: 4 });
  const seen = noteSeen(t, loops);
  const answers: string[] = [];
  let onAsk: (() => Promise<void>) | undefined;
  const consumer = loops.bus.consumer('may start', async (message) => {
    const call = onAsk;
    onAsk = undefined;
    await call?.();
    message.reply(answers.shift() ?? 'yes');
  });
  t.after(() => consumer.close());
  const members = [...named('a', 'b'), { unit: picky, name: 'c' }];
  answers.push('no');
  await assert.rejects(loops.deployAll(members, { strategy: 'one-for-all' }), {
    code: 'UNIT_START_FAILED',
    message: /instance 0 of c could not start: no/,
  });
  assert.deepEqual(loops.deployments, []);
  await waitFor(() => seen.length === 4);
  assert.deepEqual(seen.splice(0), ['+a', '+b', '-b', '-a']);
  const group = await loops.deployAll(members, { strategy: 'one-for-all' });
  await waitFor(() => seen.length === 3);
  seen.length = 0;
  // The start of c fails once in the restart.
  answers.push('not now');
  loops.bus.send('kill a', 0);
  await waitFor(() => seen.length >= 9);
  await waitFor(() => allRun(group));
  assert.deepEqual(seen.splice(0), ['-c', '-b', '+a', '+b', '-b', '-a', '+a', '+b', '+c']);
  // While c starts, b is killed.
  onAsk = async () => {
    loops.bus.send('kill b', 0);
    const [before] = await memberOf(group, 'b').status();
    await waitFor(async () => (await memberOf(group, 'b').status())[0]?.pid !== before?.pid);
  };
  loops.bus.send('kill a', 0);
  await waitFor(() => seen.length >= 10);
  await waitFor(() => allRun(group));
  assert.deepEqual(seen.splice(0), ['-c', '-b', '+a', '+b', '+c', '-c', '-a', '+a', '+b', '+c']);
  // While c starts, the group is undeployed.
  let undeployed: Promise<void> | undefined;
  onAsk = async () => {
    undeployed = group.undeploy();
    await Promise.resolve();
  };
  loops.bus.send('kill b', 0);
  await group.ended;
  await undeployed;
  assert.deepEqual(loops.deployments, []);
  assert.deepEqual(await Promise.all(['a', 'b', 'c'].map((name) => isThere(loops, name))), [
    false,
    false,
    false,
  ]);
});

async function isThere({ bus }: Loops, address: string): Promise<boolean> {
  return await bus.request(address, 0).then(
    () => true,
    () => false,
  );
}

test('a stop that never ends holds up no restart, and members may be undeployed', {
  timeout: longMs,
}, async (t) => {
  const loops = startLoops(t, { processes: 3 });
  const seen = noteSeen(t, loops);
  const group = await loops.deployAll(
    [
      { unit, name: 'a' },
      { unit, name: 'b', instances: 2, config: 'stubborn', stopTimeoutMs: 200 },
      { unit, name: 'c', on: 'blocking' },
    ],
    { strategy: 'one-for-all' },
  );
  await waitFor(() => seen.length === 4);
  seen.length = 0;
  loops.bus.send('exit c', 0);
  await waitFor(() => seen.length >= 7);
  await waitFor(() => allRun(group));
  assert.deepEqual(seen.splice(0), ['-b', '-b', '-a', '+a', '+b', '+b', '+c']);
  await memberOf(group, 'a').undeploy();
  loops.bus.send('exit c', 0);
  await waitFor(() => seen.length >= 6);
  await waitFor(async () => (await states(group)).length === 3 && (await allRun(group)));
  assert.deepEqual(seen.splice(0), ['-a', '-b', '-b', '+b', '+b', '+c']);
  await assert.rejects(group.undeploy(), { code: 'UNIT_STOP_FAILED' });
  await group.ended;
});

test('a unit deploys a group, which ends with it', { timeout: longMs }, async (t) => {
  const loops = startLoops(t);
  const seen = noteSeen(t, loops);
  const parent = async ({ bus }: UnitContext): Promise<void> => {
    const group = await deployAll(
      [
        { unit, name: 'a' },
        { unit, name: 'b' },
      ],
      { strategy: 'one-for-all', restarts: { max: 0 } },
    );
    bus.consumer('end group', async (message) => {
      await group.undeploy();
      await group.ended;
      message.reply(group.deployments.map(({ name }) => name));
    });
  };
  const first = await loops.deploy(parent);
  assert.deepEqual((await loops.bus.request('end group', 0)).body, ['a', 'b']);
  assert.deepEqual(loops.deployments, [first]);
  const second = await loops.deploy(parent);
  await second.undeploy();
  await waitFor(() => seen.length === 8);
  assert.deepEqual(seen, ['+a', '+b', '-b', '-a', '+a', '+b', '-b', '-a']);
});

test('loops that close while a group starts undeploy it', async (t) => {
  const loops = startLoops(t);
  let closed: Promise<void> | undefined;
  const first = ({ bus }: UnitContext): Promise<unknown> => bus.request('begin', 0);
  loops.bus.consumer('begin', (message) => {
    closed = loops.close();
    message.reply(0);
  });
  await assert.rejects(loops.deployAll([{ unit: first }, { unit }]), {
    code: 'UNIT_UNDEPLOYED',
    message: /^the group was undeployed while its units started: deploy it again$/,
  });
  await closed;
});

test('wrong options of a group are refused by name', async (t) => {
  const loops = startLoops(t);
  const wrong: readonly (readonly [units: unknown, options: unknown, message: RegExp])[] = [
    [undefined, {}, /^units is undefined: it must be a list of at least one \{ unit, …options/],
    [[], {}, /^units is an array: it must be a list of at least one/],
    [[unit], {}, /^units\[0\] is a function: it must be an object \{ unit, …options of deploy \}/],
    [[{ name: 'a' }], {}, /^units\[0\] is an object: it must be an object \{ unit/],
    [[{ unit, restarts: { max: 1 } }], {}, /^units\[0\] has restarts, which are those of the gr/],
    [[{ unit, instancs: 1 }], {}, /^there is no "instancs" in the options of deploy: .*instances/],
    [[{ unit }], { strategy: 'all' }, /^strategy is "all": it must be "one-for-one" or "one-for-/],
    [[{ unit }], { stratgy: 'x' }, /^there is no "stratgy" in the options of deployAll: .*strateg/],
    [[{ unit }], { restarts: { max: -1 } }, /^restarts\.max is -1: it must be an integer from 0/],
  ];
  for (const [units, options, message] of wrong) {
    const call = Reflect.apply(loops.deployAll, loops, [units, options]);
    await assert.rejects(call, { code: 'OPTION_INVALID', message });
  }
  await assert.rejects(loops.deployAll([{ unit: './nowhere.js' }]), { code: 'UNIT_INVALID' });
});
