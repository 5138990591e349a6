// Roles of threads, from the names in each release line of Node, and otherwise from order and waiting. The
// lists come from real programs.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { threadsOf } from '../../src/proc/index.js';
import { Pool } from '../../src/public.js';
import { isNode, rolesOf, workerRole } from '../../src/syscalls/roles.js';
import { library } from '../faults/child.js';
import { cannotCount, notLinux, start, trace } from './tracing.js';

const identity = { pid: 10, program: 'node', args: ['node', 'app.js'], isCgi: false };

/** Threads by name; a trailing `*` marks one that waits for events. */
function rolesFor(names: readonly string[], args = identity.args): string[] {
  const threads = names.map((name, at) => ({
    pid: 10,
    tid: 10 + at,
    name: name.replace('*', ''),
    waitsForEvents: name.endsWith('*'),
  }));
  const roles = rolesOf({ ...identity, args }, threads, 'main loop');
  return threads.map(({ tid }) => roles.get(tid) ?? '');
}

const helpers = ['V8 helper', 'V8 helper', 'V8 helper', 'V8 helper', 'V8 helper'];

test('Node 24 names its threads, and a worker thread may have a name of its own', () => {
  const names = ['MainThread*', 'DelayedTaskSche*', ...Array<string>(4).fill('V8Worker')];
  const roles = rolesFor([...names, 'SignalInspector', 'loopy*', 'WorkerThread*', 'libuv-worker']);
  const rest = ['inspector', 'loop 1', 'loop 2', 'blocking pool'];
  assert.deepEqual(roles, ['main loop', ...helpers, ...rest]);
});

test('Node 26 names them differently', () => {
  const roles = rolesFor(['node-MainThread*', 'DelayedTaskSche*', 'node-V8Worker', 'libuv-worker']);
  assert.deepEqual(roles, ['main loop', 'V8 helper', 'V8 helper', 'blocking pool']);
});

test('Node 20 names none: order identifies helpers, waiting for events identifies loops', () => {
  const names = [
    'node*',
    'node*',
    ...Array<string>(4).fill('node'),
    'node',
    'node',
    'node*',
    'node',
  ];
  const rest = ['inspector', 'blocking pool', 'loop 1', 'blocking pool'];
  assert.deepEqual(rolesFor(names), ['main loop', ...helpers, ...rest]);
});

test('threads of ours are named, and those of a titled process are not taken for something else', () => {
  const title = 'manycore serve ';
  const names = [`${title}*`, 'node*', 'node', 'node', 'node', 'node', 'node', 'node'];
  const ours = ['manycore-accept*', 'manycore-parent', `${title}*`, 'manycore worker*'];
  const roles = rolesFor([...names, ...ours], ['manycore serve 0']);
  const rest = [
    'inspector',
    'blocking pool',
    'listener',
    'parent watch',
    'loop 1',
    'thread worker',
  ];
  assert.deepEqual(roles, ['main loop', ...helpers, ...rest]);
});

test('titles identify workers, also those that several loops share', () => {
  const roleOf = (title: string) => workerRole({ ...identity, args: [title] });
  assert.equal(roleOf('manycore worker 3'), 'worker 3');
  assert.equal(roleOf('manycore shared worker 12'), 'shared worker 12');
  assert.equal(roleOf('manycore serve 0'), undefined);
  assert.equal(roleOf('node'), undefined);
});

test('threads of other programs keep their names, and unseen threads are children', () => {
  const other = { ...identity, program: 'python3', args: ['python3', 'x.py'] };
  assert.equal(isNode(other), false);
  const threads = ['python3', ''].map((name, at) => ({
    pid: 10,
    tid: 10 + at,
    name,
    waitsForEvents: false,
  }));
  const roles = rolesOf(other, threads, 'main loop');
  assert.deepEqual([...roles.values()], ['thread python3', 'child']);
  const ofCgi = rolesOf({ ...other, isCgi: true }, threads, 'main loop');
  assert.deepEqual([...ofCgi.values()], ['CGI child python3', 'child']);
});

for (const [method, skip] of [
  ['ebpf', cannotCount.ebpf],
  ['counters', notLinux],
] as const) {
  test(`${method}: workers of a pool have lines of their own, by their numbers`, {
    skip,
  }, async (t) => {
    const text = `
      import { Pool } from ${JSON.stringify(library)};
      const pool = new Pool({ size: 2 });
      await pool.warm();
      console.log('warm');
      for (;;) await pool.run(() => 1);`;
    const { pid } = await start(t, [process.execPath, '--input-type=module', '-e', text]);
    const { report } = await trace(t, ['--method', method, '--seconds', '1', String(pid)]);
    const roles = report.threads.filter(({ tid, pid }) => tid === pid).map(({ role }) => role);
    assert.deepEqual(roles.sort(), ['main loop', 'worker 1', 'worker 2']);
  });
}

const namesNone =
  Number(process.versions.node.split('.')[0]) < 22 && 'Node gives threads no names before 22';

test('the name of a worker thread distinguishes it from a loop', {
  skip: notLinux || namesNone,
}, async () => {
  await using pool = new Pool({ worker: 'thread', size: 1 });
  await pool.run(() => 1);
  const names = threadsOf(process.pid).map((tid) =>
    readFileSync(`/proc/self/task/${tid}/comm`, 'utf8').trim(),
  );
  assert.ok(rolesFor(names).includes('thread worker'), `${names}`);
});
