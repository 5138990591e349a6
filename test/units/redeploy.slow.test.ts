// Versions of the code of units: one for a deployment, also after an edit, and replacement without a lost message.
// Long (over 400 lines), because all cases edit the same small programs.

import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import * as nodeModule from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Deployment, InstanceEnd, Loops } from '../../src/public.js';
import { waitFor } from '../support/index.js';
import { startLoops } from './loops.js';

const reloadsImports = 'registerHooks' in nodeModule;
const needsHooks = !reloadsImports && 'Node loads imported ES modules only once here';
const readsTypes = Boolean(Reflect.get(process.features, 'typescript'));

/** Returns a function that writes a file of the program under test, and returns its path. */
function program(t: TestContext, type = 'module') {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-redeploy-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const write = (name: string, text: string): string => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };
  write('package.json', JSON.stringify({ type }));
  return write;
}

/** Each instance has an address of its own, and one for all. */
const body = (version: string, extra = '') => `({ bus, instance }) => {
  const answer = (message) => message.reply(${version});
  bus.consumer('version', answer);
  bus.consumer('version' + instance, answer);
  ${extra}
}`;
const unit = (version: string, extra?: string) => `export default ${body(version, extra)};`;

async function versionsOf(loops: Loops, deployment: Deployment): Promise<unknown[]> {
  const rows = await deployment.status();
  const asked = rows.map(({ instance }) => loops.bus.request(`version${instance}`, 0));
  return (await Promise.all(asked)).map((reply) => reply.body);
}

/** The one version in the status. */
async function onlyVersion(deployment: Deployment): Promise<string> {
  const versions = new Set((await deployment.status()).map(({ version }) => version));
  const [version = ''] = versions;
  assert.equal(versions.size, 1, 'all instances have one version');
  assert.match(version, /^[0-9a-f]{12}$/);
  return version;
}

for (const [file, type, write] of [
  ['mjs', 'module', unit],
  ['js', 'module', unit],
  ['js', 'commonjs', (version: string) => `module.exports = ${body(version)};`],
  ['cjs', 'module', (version: string) => `module.exports = ${body(version)};`],
  ['ts', 'module', (version: string) => `const typed: number = 0; ${unit(version)}`],
] as const) {
  const skip = file === 'ts' && !readsTypes && 'Node reads no types here';
  test(`an edited .${file} of ${type} runs in one version`, { skip }, async (t) => {
    const put = program(t, type);
    const path = put(`unit.${file}`, write('1'));
    const loops = startLoops(t);
    const first = await loops.deploy(path); // one of the two loops has it then
    const before = await onlyVersion(first);
    put(`unit.${file}`, write('2'));
    await first.undeploy();
    const second = await loops.deploy(path, { instances: 4 });
    assert.deepEqual(await versionsOf(loops, second), [2, 2, 2, 2]);
    const after = await onlyVersion(second);
    assert.notEqual(after, before);
    put(`unit.${file}`, write('33'));
    await second.redeploy();
    assert.deepEqual(await versionsOf(loops, second), [33, 33, 33, 33]);
    put(`unit.${file}`, write('1'));
    await second.redeploy();
    assert.deepEqual(await versionsOf(loops, second), [1, 1, 1, 1]);
    assert.equal(await onlyVersion(second), before);
    await second.redeploy();
    assert.deepEqual(await versionsOf(loops, second), [1, 1, 1, 1]);
  });
}

test('an edit in a file that the unit imports counts, also by CommonJS', {
  skip: needsHooks,
}, async (t) => {
  const put = program(t);
  put('state.js', 'let count = 0; export const next = () => ++count;');
  put('inner.cjs', 'exports.inner = 1;');
  put('outer.js', `import { inner } from './inner.cjs'; export const outer = inner;`);
  const text = `import { outer } from './outer.js'; import { next } from './state.js'; ${unit('[outer, next()]')}`;
  const path = put('unit.js', text);
  const loops = startLoops(t, { processes: 1 });
  const deployment = await loops.deploy(path);
  assert.deepEqual(await versionsOf(loops, deployment), [[1, 1]]);
  put('inner.cjs', 'exports.inner = 2;');
  await deployment.redeploy();
  assert.deepEqual(
    await versionsOf(loops, deployment),
    [[2, 2]],
    'the state of other modules stays',
  );
  put('outer.js', `import { inner } from './inner.cjs'; export const outer = inner * 10;`);
  await deployment.redeploy();
  assert.deepEqual(await versionsOf(loops, deployment), [[20, 3]]);
});

test('an edit that a loop cannot load is refused', { skip: reloadsImports }, async (t) => {
  const put = program(t);
  put('inner.js', 'export const inner = 1;');
  const path = put('unit.js', `import { inner } from './inner.js'; ${unit('inner')}`);
  const loops = startLoops(t, { processes: 1 });
  const deployment = await loops.deploy(path);
  put('inner.js', 'export const inner = 2;');
  await assert.rejects(deployment.redeploy(), { message: /inner\.js was edited.*Node 22\.15/ });
  assert.deepEqual(await versionsOf(loops, deployment), [1]);
});

/** Counts what it gets, and keeps that when it is replaced. */
const counter = (version: number) => `let count = 0;
export default class {
  start({ bus, instance, on }) {
    bus.consumer('count', (message) => {
      count += 1;
      message.reply({ count, version: ${version}, instance });
    });
    bus.consumer('slow', async (message) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      message.reply(${version});
    });
  }
  async save() {
    await new Promise((resolve) => setTimeout(resolve, 30)); // messages wait meanwhile
    return count;
  }
  restore(state) { count = state; }
}`;

for (const on of ['loop', 'blocking'] as const) {
  test(`redeploy under load loses nothing and does nothing twice, on: ${on}`, async (t) => {
    const put = program(t);
    const path = put('unit.js', counter(1));
    const loops = startLoops(t);
    const deployment = await loops.deploy(path, { on });
    const seen: unknown[] = [];
    let isOver = false;
    let answered = 0;
    const send = async (): Promise<void> => {
      while (!isOver) {
        const sent = Array.from({ length: 20 }, () => loops.bus.request('count', 0));
        for (const { body: reply } of await Promise.all(sent)) {
          answered += 1;
          assert.equal(Object(reply).count, answered, 'each message once, in order');
          if (Object(reply).version !== seen.at(-1)) seen.push(Object(reply).version);
        }
        assert.ok((await loops.bus.request('slow', 0)).body);
      }
    };
    const sending = send();
    await waitFor(() => answered > 100);
    put('unit.js', counter(2));
    // Twice at once: the second finds nothing to do.
    await Promise.all([deployment.redeploy(), deployment.redeploy()]);
    await waitFor(() => seen.includes(2));
    put('unit.js', counter(3));
    await deployment.redeploy();
    const until = answered + 100;
    await waitFor(() => answered > until);
    isOver = true;
    await sending;
    assert.deepEqual(seen, [1, 2, 3]);
    assert.equal((await deployment.status()).length, 1);
    assert.equal((await deployment.health()).length, 1, 'no old instance is left');
  });
}

test('a version that does not start leaves all as they were', async (t) => {
  const put = program(t);
  const path = put('unit.js', unit('1'));
  const loops = startLoops(t);
  const deployment = await loops.deploy(path, { instances: 4 });
  const before = await onlyVersion(deployment);
  const stays = async (message: RegExp): Promise<void> => {
    await assert.rejects(deployment.redeploy(), { code: 'UNIT_REDEPLOY_FAILED', message });
    assert.deepEqual(await versionsOf(loops, deployment), [1, 1, 1, 1]);
    assert.equal(await onlyVersion(deployment), before);
  };
  put('unit.js', 'export default (');
  await stays(/all instances go on as they were: .*unit\.js cannot be loaded/);
  put('unit.js', unit('2', `throw new Error('no database');`));
  await stays(/no database/);
  put('unit.js', 'export const other = 1;');
  await stays(/not a deployable unit/);
  // The instances before it are replaced already, and taken back.
  put('unit.js', unit('2', `if (instance === 3) throw new Error('the last one');`));
  await stays(/the last one/);
  put('unit.js', unit('2'));
  await deployment.redeploy();
  assert.deepEqual(await versionsOf(loops, deployment), [2, 2, 2, 2]);
});

test('other instances of an edited file are refused, and lost ones announced', async (t) => {
  const put = program(t);
  const path = put('unit.js', unit('1'));
  const loops = startLoops(t);
  const deployment = await loops.deploy(path);
  const deployed = await onlyVersion(deployment);
  const [{ loop = 0, pid = 0 } = {}] = await deployment.status();
  const other = loops.loops.find((each) => each.loop !== loop)?.loop ?? 0;
  put('unit.js', unit('2'));
  await assert.rejects(deployment.move(0, other), (error: Error) => {
    assert.match(
      error.message,
      /unit\.js was edited after its deployment \(version \w+, and \w+ now\)/,
    );
    assert.equal(Reflect.get(Object(error.cause), 'code'), 'UNIT_VERSION_CHANGED');
    return true;
  });
  await assert.rejects(deployment.scale(2), { code: 'UNIT_VERSION_CHANGED' });
  assert.deepEqual(await versionsOf(loops, deployment), [1]);
  const announced: unknown[] = [];
  const note = (message: unknown): void => void announced.push(message);
  subscribe('manycore:unit:version-changed', note);
  t.after(() => unsubscribe('manycore:unit:version-changed', note));
  process.kill(pid, 'SIGKILL');
  await waitFor(async () => {
    const [row] = await deployment.status();
    return row?.state === 'running' && row.pid !== pid;
  });
  assert.deepEqual(await versionsOf(loops, deployment), [2]);
  const version = await onlyVersion(deployment);
  assert.deepEqual(announced, [
    { unit: 'unit', deployment: deployment.id, instance: 0, deployed, version },
  ]);
  await deployment.redeploy();
  await deployment.scale(2);
  assert.deepEqual(await versionsOf(loops, deployment), [2, 2]);
});

test('a process that is lost during a redeployment has the new version afterwards', async (t) => {
  const put = program(t);
  const path = put('unit.js', unit('1'));
  const loops = startLoops(t);
  const deployment = await loops.deploy(path, { instances: 4 });
  put(
    'unit.js',
    unit('2', `if (instance === 1) await bus.request('kill', process.pid);`).replace(
      '({',
      'async ({',
    ),
  );
  const killed = new Set<number>();
  loops.bus.consumer<number>('kill', (message) => {
    if (killed.size === 0) process.kill(message.body, 'SIGKILL');
    else message.reply(0);
    killed.add(message.body);
  });
  await deployment.redeploy();
  assert.equal(killed.size > 0, true);
  await waitFor(async () => (await deployment.status()).every(({ state }) => state === 'running'));
  assert.deepEqual(await versionsOf(loops, deployment), [2, 2, 2, 2]);
  await onlyVersion(deployment);
});

/** A unit whose start takes as long as the program sets it to; ends its thread by request. */
const slowUnit = (version: number): string =>
  unit(
    String(version),
    `bus.consumer('exit' + instance, () => process.exit(3));
    await bus.request('begin', [instance, ${version}]);`,
  ).replace('({', 'async ({');

for (const on of ['loop', 'blocking'] as const) {
  test(`a loss during a redeployment is reported, and one before it counts, on: ${on}`, async (t) => {
    const put = program(t);
    const path = put('unit.js', slowUnit(1));
    const loops = startLoops(t);
    let isHeld = false;
    const held: (() => void)[] = [];
    loops.bus.consumer<number[]>('begin', (message) => {
      if (isHeld && message.body[0] === 0) held.push(() => message.reply(0));
      else message.reply(0);
    });
    const release = (): void => {
      isHeld = false;
      for (const each of held.splice(0)) each();
    };
    const deployment = await loops.deploy(path, { instances: 2, on });
    const ends: InstanceEnd[] = [];
    loops.bus.monitor(deployment, (end) => void ends.push(end));
    const lose = async (): Promise<void> => {
      const [row] = await deployment.status();
      if (on === 'loop') process.kill(row?.pid ?? assert.fail(), 'SIGKILL');
      else loops.bus.send('exit0', 0);
    };
    const allRun = async (): Promise<boolean> =>
      (await deployment.status()).every(({ state }) => state === 'running');
    // Lost while it is replaced.
    put('unit.js', slowUnit(2));
    isHeld = true;
    const redeployed = deployment.redeploy();
    await waitFor(() => held.length > 0);
    await lose();
    await waitFor(async () => (await deployment.status())[0]?.loop === undefined);
    release();
    await redeployed;
    await waitFor(allRun);
    const ofFirst = ends.splice(0).filter(({ instance }) => instance === 0);
    assert.deepEqual(
      ofFirst.map(({ reason }) => reason),
      ['lost'],
    );
    assert.deepEqual(await versionsOf(loops, deployment), [2, 2]);
    // It starts again with the old version, which is then replaced.
    isHeld = true;
    await lose();
    await waitFor(() => held.length > 0);
    put('unit.js', slowUnit(3));
    const again = deployment.redeploy();
    release();
    await again;
    await waitFor(allRun);
    assert.deepEqual(await versionsOf(loops, deployment), [3, 3]);
    await onlyVersion(deployment);
  });
}

for (const size of [
  { processes: 2, loops: 1 },
  { processes: 1, loops: 2 },
]) {
  const what = size.loops === 1 ? 'process' : 'loop';
  test(`a version that ends its ${what} is given to no other instance`, async (t) => {
    const put = program(t);
    const path = put('unit.js', unit('1'));
    const loops = startLoops(t, size);
    const deployment = await loops.deploy(path, { instances: 2, restarts: { max: 0 } });
    put('unit.js', unit('2', 'process.exit(3);'));
    await assert.rejects(deployment.redeploy(), {
      code: 'UNIT_REDEPLOY_FAILED',
      message: new RegExp(
        `others go on as they were: instance 0 .*, because its ${what} ended \\(`,
      ),
    });
    const state = await waitFor(async () => {
      const [row] = await deployment.status();
      return row !== undefined && ['failed', 'running'].includes(row.state) && row.state;
    });
    // It has loaded the file once more, or runs beside the other one where what replaces its own is late.
    if (state === 'failed') await assert.rejects(deployment.ended, { code: 'UNIT_FAILED' });
    else assert.equal((await loops.bus.request('version0', 0)).body, 1);
    assert.equal((await loops.bus.request('version1', 0)).body, 1);
    put('unit.js', unit('3'));
    await deployment.redeploy();
    await deployment.scale(2);
    assert.deepEqual(await versionsOf(loops, deployment), [3, 3]);
  });
}

test('a thread of a version that does not start is ended', async (t) => {
  const put = program(t);
  const path = put('unit.js', unit('1'));
  const loops = startLoops(t, { processes: 1 });
  const deployment = await loops.deploy(path, { on: 'blocking' });
  put('unit.js', unit('2', `throw new Error('no database');`));
  await assert.rejects(deployment.redeploy(), { code: 'UNIT_REDEPLOY_FAILED', message: /no data/ });
  assert.deepEqual(await versionsOf(loops, deployment), [1]);
  for (const version of ['3', '4']) {
    put('unit.js', unit(version));
    await deployment.redeploy();
    assert.deepEqual(await versionsOf(loops, deployment), [Number(version)]);
  }
});

test('a group that a replaced unit deployed ends as a whole, the last one first', async (t) => {
  const put = program(t);
  const packagePath = JSON.stringify(new URL('../../src/public.js', import.meta.url).href);
  const parent = (version: number): string =>
    `import { deployAll } from ${packagePath};
    const unit = ({ bus, name }) => async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      bus.publish('seen', name);
    };
    export default async () => {
      await deployAll([{ unit, name: 'a${version}' }, { unit, name: 'b${version}' }]);
    };`;
  const path = put('unit.js', parent(1));
  const loops = startLoops(t);
  const seen: unknown[] = [];
  loops.bus.consumer('seen', ({ body }) => void seen.push(body));
  const deployment = await loops.deploy(path);
  put('unit.js', parent(2));
  await deployment.redeploy();
  await waitFor(() => seen.length === 2);
  assert.deepEqual(seen, ['b1', 'a1']);
});

test('a unit redeploys another one; children and values have rules of their own', async (t) => {
  const put = program(t);
  const child = put('child.js', unit(`'child'`));
  const parent = (version: number): string =>
    `export default async ({ bus, deploy }) => {
      const child = await deploy(${JSON.stringify(child)}, { name: 'child ${version}' });
      bus.consumer('redeploy', async (message) => message.reply(await child.redeploy()));
    };`;
  const path = put('parent.js', parent(1));
  const loops = startLoops(t);
  const deployment = await loops.deploy(path);
  const names = () => loops.deployments.map(({ name }) => name).sort();
  put('child.js', unit(`'edited'`));
  await loops.bus.request('redeploy', 0);
  assert.equal((await loops.bus.request('version', 0)).body, 'edited');
  put('parent.js', parent(2));
  await deployment.redeploy();
  assert.deepEqual(names(), ['child 2', 'parent'], 'the old one has ended its own');
  const value = await loops.deploy(() => {});
  await assert.rejects(value.redeploy(), { code: 'UNIT_INVALID', message: /deployed as a value/ });
  await value.undeploy();
  await assert.rejects(value.redeploy(), { code: 'UNIT_UNDEPLOYED' });
  rmSync(path);
  await assert.rejects(deployment.redeploy(), {
    code: 'UNIT_INVALID',
    message: /there is no unit/,
  });
});

test('a server on a port stays open while its unit is replaced', async (t) => {
  const put = program(t);
  const server = (version: number): string =>
    `import { createServer } from 'node:http';
    import { once } from 'node:events';
    export async function start({ config }) {
      const server = createServer((request, response) => response.end('${version}'));
      await once(server.listen(config), 'listening');
    }`;
  const path = put('unit.js', server(1));
  const loops = startLoops(t);
  const deployment = await loops.deploy(path, { instances: 2, config: 0 });
  const [address] = await loops.addresses();
  assert.ok(typeof address === 'object');
  const fetched = async (): Promise<string> => {
    const headers = { connection: 'close' };
    return await (await fetch(`http://127.0.0.1:${address.port}/`, { headers })).text();
  };
  const seen = new Set([await fetched()]);
  put('unit.js', server(2));
  let isOver = false;
  const redeployed = deployment.redeploy().then(() => {
    isOver = true;
  });
  while (!isOver) seen.add(await fetched());
  await redeployed;
  assert.equal(await fetched(), '2');
  assert.ok(seen.has('1'));
  assert.equal((await loops.addresses()).length, 1);
});
