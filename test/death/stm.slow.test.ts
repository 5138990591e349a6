// Workers that end themselves by SIGKILL at each step of a commit, and at each step of completing the commit of
// another: sums stay right, lists in order, and the others go on.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../../src/errors.js';
import { textOf } from '../../src/proc/index.js';
import { Pool } from '../../src/public.js';
import { atomically, atomicallyWhen, check, free, tvar } from '../../src/stm/public.js';
import { programFolder, runNode } from '../pool/programs.js';
import { waitFor, withDeadline } from '../support/index.js';

/** Deadline of a wait in ms, in which a worker starts and ends. */
const deadlineMs = 60_000;

/** Steps of commit.rs and of memory.rs; then those of recovery.rs. */
const steps = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 31];
const repairs = [16, 17, 18, 19];
const passings = [1, 2, 50];

/** A worker that moves amounts between cells until it is killed, or stopped, at a passing of a step. */
function mover(kill: string, stop = '') {
  return new Pool({
    size: 1,
    worker: 'process',
    channel: 'shm',
    env: { ...process.env, MANYCORE_STM_KILL: kill, MANYCORE_STM_STOP: stop },
  });
}

/** Cells whose amounts are 600 together, and what moves amounts between them for ever. */
function makeWorld() {
  const cells = Array.from({ length: 6 }, (_, at) => tvar({ at, amount: 100 }));
  const moves = tvar(0);
  const bell = tvar(0);
  const move = () => {
    for (let turn = 0; ; turn += 1) {
      atomically(() => {
        const from = cells[turn % 6];
        const to = cells[(turn * 5 + 1) % 6];
        if (from === undefined || to === undefined || from === to) return;
        from.update(({ at, amount }) => ({ at, amount: amount - 1 }));
        to.update(({ at, amount }) => ({ at, amount: amount + 1 }));
        const short = tvar(turn); // an object that comes and goes
        free(short);
        moves.update((count) => count + 1);
        bell.set(turn);
      });
    }
  };

  const total = () => atomically(() => cells.reduce((sum, cell) => sum + cell.get().amount, 0));
  return { cells, moves, bell, move, total };
}

/** Runs `move` in a worker that kills itself, beside a sleeper that its commits wake. */
async function killedAt(kill: string): Promise<void> {
  const { cells, moves, bell, move, total } = makeWorld();
  const pool = mover(kill);
  const before = bell.peek();
  const wakes = atomicallyWhen(() => check(bell.get() !== before), { timeoutMs: deadlineMs });
  const ends = assert.rejects(pool.run(move), (error) => hasCode(error, 'WORKER_EXITED'));
  await withDeadline(ends, deadlineMs, `the end at ${kill}`);
  // The next commit of ours meets its locks, if it left any; the sleeper sees a change of either.
  const moved = moves.peek();
  atomically(() => {
    moves.set(moves.get() + 1);
    bell.set(before - 1);
  });
  await withDeadline(wakes, deadlineMs, `the sleeper beside ${kill}`);
  assert.ok(moves.peek() >= moved, kill);
  assert.equal(total(), 600, kill);
  for (const [at, cell] of cells.entries()) assert.equal(cell.peek().at, at, kill);
  await pool.destroy();
}

for (const step of steps) {
  test(`a worker that ends before step ${step} of a commit leaves all of it or nothing`, async () => {
    for (const passing of passings) await killedAt(`${step}:${passing}`);
  });
}

for (const repair of repairs) {
  test(`a worker that ends before step ${repair} of a repair leaves it to the next one`, async () => {
    const { moves, move, total } = makeWorld();
    const isKilled = (error: unknown): boolean => hasCode(error, 'WORKER_EXITED');
    // One ends behind its commit point, with all its locks. A second one, which gets its number, repairs that and ends
    // there: nobody else may touch the variables meanwhile.
    const first = mover('8:1');
    await assert.rejects(first.run(move), isKilled);
    const second = mover(`${repair}:1`);
    const ends = assert.rejects(second.run(move), isKilled);
    await withDeadline(ends, deadlineMs, `the repair ${repair}`);
    await second.destroy();
    await first.destroy();
    // The third one finds a claim of the second one.
    const before = moves.peek();
    atomically(() => moves.update((count) => count + 1));
    assert.equal(moves.peek(), before + 1);
    assert.equal(total(), 600);
  });
}

test('a worker that is stopped in the middle of a commit holds up who needs its variables, and goes on', async (t) => {
  const { moves, move, total } = makeWorld();
  const other = tvar(0);
  const pool = mover('', '8:3');
  t.after(() => pool.destroy());
  const run = pool.run(move);
  const ends = assert.rejects(run);
  const pid = await waitFor(() => pool.stats().workers.find(({ pid = 0 }) => isStopped(pid))?.pid);
  atomically(() => other.set(1)); // nobody else is held up
  let error: unknown;
  await waitFor(() => {
    try {
      total();
      moves.peek();
      atomically(() => moves.update((count) => count + 1));
      return false;
    } catch (thrown) {
      error = thrown;
      return true;
    }
  });
  assert.ok(hasCode(error, 'STM_STUCK'), String(error));
  assert.match(String(error), new RegExp(`thread ${pid} has stopped.*kill -CONT`));
  process.kill(pid, 'SIGCONT');
  const before = moves.peek();
  await withDeadline(
    atomicallyWhen(() => check(moves.get() > before + 10)),
    deadlineMs,
    'the worker that goes on',
  );
  assert.equal(total(), 600);
  await pool.destroy();
  await ends;
});

test('with more patience a stopped worker is waited for', async (t) => {
  // The shell lets it go on after two seconds: without the setting the wait is over before.
  const text = `
    import assert from 'node:assert/strict';
    import { spawn } from 'node:child_process';
    import { readFileSync } from 'node:fs';
    import { setImmediate as turn } from 'node:timers/promises';
    import { Pool } from 'manycore';
    import { atomically, tvar } from 'manycore/stm';
    const [one, other] = [tvar(0), tvar(0)];
    const add = () => atomically(() => [one, other].map((each) => each.update((value) => value + 1)));
    const pool = new Pool({ size: 1, env: { ...process.env, MANYCORE_STM_STOP: '8:3' } });
    const run = pool.run(() => { for (let count = 0; count < 10; count += 1) add(); });
    const isStopped = (pid) => /^State:\\s+T/m.test(readFileSync('/proc/' + pid + '/status', 'utf8'));
    let pid;
    while ((pid = pool.stats().workers.find(({ pid }) => pid && isStopped(pid))?.pid) === undefined) await turn();
    spawn('sh', ['-c', 'sleep 2; kill -CONT ' + pid]);
    add();
    await run;
    assert.deepEqual([one.peek(), other.peek()], [11, 11]);
    await pool.close();`;
  const settings = 'process.env.MANYCORE_STM_PATIENCE_MS = 60_000;';
  const folder = programFolder(t, { 'main.mjs': text, 'settings.mjs': settings });
  const { stderr, exitCode } = await runNode(folder, ['--import', './settings.mjs', 'main.mjs']);
  assert.equal(exitCode, 0, stderr);
});

function isStopped(pid: number): boolean {
  return /^State:\s+T/m.test(textOf(`/proc/${pid}/status`));
}
