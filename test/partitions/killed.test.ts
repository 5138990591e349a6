// Partitions one of whose processes is killed, or the program that has started them: nothing is left. Not here: ends by
// limits and by loops (ends.test.ts).

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { hasCode } from '../../src/errors.js';
import { readTree } from '../../src/proc/index.js';
import { isRunning, killOne, waitFor } from '../support/index.js';
import { assertWell, silence, skipWall, wallPool, walls } from './hostile.js';
import { groups, guestProcesses, sandboxProcesses } from './support.js';

const starter = fileURLToPath(new URL('fixtures/starter.js', import.meta.url));

for (const wall of walls) {
  test(`${wall}: nothing is left, whichever of its processes is killed`, {
    skip: skipWall(wall),
  }, async (t) => {
    const pool = wallPool(t, wall, {}, { graceMs: 50 });
    let killed = 0;
    for (let at = 0; ; at += 1) {
      await pool.warm();
      const tree = readTree(Number(pool.stats().workers[0]?.pid));
      const victim = tree[at];
      if (victim === undefined) break;
      if (!isRunning(victim)) continue; // one that has just ended by itself
      const task = pool.with({ timeoutMs: 5_000 }).run(silence);
      killOne(victim, 'SIGKILL');
      killed += 1;
      await assert.rejects(task, (error) => {
        assert.ok(hasCode(error, 'WORKER_EXITED') || hasCode(error, 'TASK_TIMED_OUT'), `${error}`);
        return true;
      });
      await waitFor(() => !tree.some((pid) => isRunning(pid)));
    }
    assert.ok(killed >= 4, `${killed} processes`); // outside, bubblewrap twice, and the program
    await assertWell(pool); // a start removes groups without a maker
  });

  test(`${wall}: it ends with the program that has started it, its groups, too`, {
    skip: skipWall(wall),
  }, async (t) => {
    const worker = wall === 'sandbox' ? { kind: wall } : { kind: 'vm', engine: wall };
    const child = spawn(process.execPath, [starter, JSON.stringify(worker)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    t.after(() => child.kill('SIGKILL'));
    await new Promise((resolve) => child.stdout.once('data', resolve));
    const left = (): number =>
      guestProcesses(child.pid).length + sandboxProcesses(child.pid).length;
    assert.ok(left() > 0);
    assert.ok(groups(child.pid).length > 0);
    killOne(child.pid, 'SIGKILL');
    await waitFor(() => left() === 0 && groups(child.pid).length === 0);
  });
}
