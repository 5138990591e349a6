import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { test } from 'node:test';
import { announcements } from '../../src/lib/index.js';

test('announcements reach a listener that subscribes by the name of the channel', () => {
  const received: unknown[] = [];
  const listener = (message: unknown) => void received.push(message);
  assert.equal(announcements.taskStart.hasSubscribers, false);
  subscribe('manycore:task:start', listener);
  assert.equal(announcements.taskStart.hasSubscribers, true);
  const message = { pool: 1, task: 2, name: 'decode', worker: 3, waitedMs: 0.5 };
  announcements.taskStart.publish(message);
  unsubscribe('manycore:task:start', listener);
  announcements.taskStart.publish(message);
  assert.deepEqual(received, [message]);
});

test('every announcement has a name of its own, manycore:part:event', () => {
  const names = Object.values(announcements).map((each) => String(each.name));
  assert.equal(new Set(names).size, names.length);
  for (const name of names)
    assert.match(name, /^manycore:(task|worker|pool|server|bus|cluster|unit):[a-z-]+$/);
});

/** Returns the standard error of a program that calls once and closes. */
function stderrWith(variable: string): string {
  const text = `import { Pool } from 'manycore';
    const pool = new Pool({ size: 1 });
    await pool.run(function double(n) { return 2 * n; }, 1);
    await pool.close();`;
  const env = { ...process.env, NODE_DEBUG: variable };
  const run = spawnSync(process.execPath, ['--input-type=module', '-e', text], {
    env,
    encoding: 'utf8',
  });
  assert.equal(run.status, 0, run.stderr);
  return run.stderr;
}

test('NODE_DEBUG=manycore prints every event, and without it none', () => {
  const lines = stderrWith('manycore').split('\n');
  const found = ['pool:open', 'worker:start', 'worker:ready', 'task:end', 'worker:exit'].map(
    (event) => lines.find((line) => line.includes(` manycore:${event} {`)),
  );
  for (const line of found) assert.match(line ?? '', /^MANYCORE \d+: manycore:[a-z:]+ \{ .* \}$/);
  assert.match(found[3] ?? '', /name: 'double'/);
  assert.equal(stderrWith('http2').includes('manycore:'), false);
});
