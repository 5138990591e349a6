// `manycore profile`: CPU profiles of the loops of a running process, and why there is none.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { agentNameOf, agentSockets } from '../../src/agent/index.js';
import { socketPaths } from '../../src/lib/index.js';
import { profileProcess } from '../../src/observe/index.js';
import { command } from '../cli/serving.js';
import { folder, open, program } from '../serve/served.js';
import { killOne, waitFor } from '../support/index.js';

const text = `
const { createServer } = require('node:http');
function burnsTime() {
  let sum = 0;
  for (let i = 0; i < 1e6; i += 1) sum += Math.sqrt(i);
  return sum;
}
setInterval(burnsTime, 5);
createServer((_, response) => response.end('ok')).listen(0);
`;

/** Pid of a process with this number of loops, all of which have an agent. */
async function servedPid(t: TestContext, loops: number): Promise<number> {
  const server = await open(t, program(t, 'app.cjs', text), { loops });
  const [pid = 0] = server.pids;
  await waitFor(() => agentsOf(pid).length >= loops);
  return pid;
}

function agentsOf(pid: number): string[] {
  return socketPaths(agentSockets).filter((path) => agentNameOf(path).pid === pid);
}

interface Profile {
  readonly nodes: readonly { callFrame: { functionName: string } }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
  readonly startTime: number;
  readonly endTime: number;
}

/** Checks what DevTools need, and that the function of the program is in it. */
function checkProfile(given: unknown): void {
  const { nodes, samples, timeDeltas, startTime, endTime }: Profile = Object(given);
  assert.ok(endTime > startTime);
  assert.ok(samples.length > 0);
  assert.equal(timeDeltas.length, samples.length);
  assert.ok(nodes.some(({ callFrame }) => callFrame.functionName === 'burnsTime'));
}

function run(cwd: string, ...args: (string | number)[]) {
  const all = [command, 'profile', ...args.map(String)];
  const { status, stdout, stderr } = spawnSync(process.execPath, all, { cwd, encoding: 'utf8' });
  return { status, stdout, stderr };
}

for (const loops of [1, 2]) {
  test(`a process with ${loops} loop(s) has a profile for each`, async (t) => {
    const pid = await servedPid(t, loops);
    const profiles = await profileProcess(pid, { seconds: 1 });
    const own = profiles.filter(({ thread }) => loops === 1 || thread !== 0);
    assert.equal(own.length, loops);
    for (const { profile } of own) checkProfile(profile);
    const [{ thread } = { thread: -1 }] = own;
    const again = await profileProcess(pid, { seconds: 1, thread });
    assert.deepEqual(
      again.map((each) => each.thread),
      [thread],
    );
  });
}

test('two profiles of one thread at a time are both whole', async (t) => {
  const pid = await servedPid(t, 1);
  const both = [profileProcess(pid, { seconds: 1 }), profileProcess(pid, { seconds: 1 })];
  for (const [each] of await Promise.all(both)) checkProfile(each?.profile);
});

test('the command writes a file for one thread, and one for each of several', async (t) => {
  const at = folder(t);
  const pid = await servedPid(t, 2);
  const child = spawn(process.execPath, [command, 'profile', `${pid}`, '--seconds', '1'], {
    cwd: at,
  });
  const [code] = await once(child, 'exit');
  assert.equal(code, 0);
  const names = readdirSync(at);
  assert.ok(names.length >= 2);
  for (const name of names) {
    assert.match(name, new RegExp(`^manycore-${pid}\\.\\d+\\.cpuprofile$`));
    if (!name.endsWith('.0.cpuprofile')) {
      checkProfile(JSON.parse(readFileSync(join(at, name), 'utf8')));
    }
  }
});

test('a process that ends meanwhile is one sentence', async (t) => {
  const pid = await servedPid(t, 1);
  const profiled = profileProcess(pid, { seconds: 100 });
  const rejected = assert.rejects(profiled, {
    code: 'PROCESS_GONE',
    message: /there is no process/,
  });
  killOne(pid, 'SIGKILL');
  await rejected;
});

test('what cannot be profiled is one sentence', async (t) => {
  const at = folder(t);
  const other = spawn('sleep', ['100']);
  const plain = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000); console.log(1)']);
  t.after(() => [other, plain].map((child) => child.kill()));
  await once(plain.stdout, 'data');
  const pid = await servedPid(t, 1);
  mkdirSync(join(at, 'full'));
  for (const [args, message] of [
    [[4_194_304], /there is no process 4194304 here: .* \(PROCESS_GONE\)/],
    [[other.pid ?? 0], /is not Node, but .* \(PROCESS_NOT_NODE\)/],
    [[plain.pid ?? 0], /has no pool, server or loop of manycore.* \(PROFILE_FAILED\)/],
    [[pid, '--thread', 99], /has no thread 99 .*: there are 0 \(PROFILE_FAILED\)/],
    [[pid, '--seconds', 0], /--seconds .* \(OPTION_INVALID\)/],
    [[pid, '--seconds', 301], /--seconds .* \(OPTION_INVALID\)/],
    [[pid, '--seconds', 'x'], /\(OPTION_INVALID\)/],
    [[pid, '--out', 'none/a'], /none\/a cannot be written: .* \(OPTION_INVALID\)/],
    [[pid, '--out', 'full', '--seconds', 1], /full.* cannot be written: .* \(OPTION_INVALID\)/],
    [['x'], /\(OPTION_INVALID\)/],
    [[], /\(OPTION_INVALID\)/],
  ] as const) {
    const { status, stdout, stderr } = run(at, ...args);
    assert.deepEqual([status, stdout], [2, ''], stderr);
    assert.match(stderr, message);
  }
});
