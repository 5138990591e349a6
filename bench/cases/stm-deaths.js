// Does anybody wait, or see something wrong, when a worker dies at a step of its commit, or of a repair?
// A hundred workers kill themselves at each step. The program then changes the same variables, and a transaction
// that sleeps is to see what the dead worker has committed, without anybody who meets its locks.
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool, shared } from 'manycore';
import { atomically, atomicallyWhen, check, free, stmStats, tvar } from 'manycore/stm';
import { counted, millis, runsOf } from '../lib/figures.js';

const setting = 'killed';
const killsAtEach = 100;
/** Steps of crates/core/src/stm/commit.rs, the last one of memory.rs. */
const commitSteps = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 31];
/** Steps of recovery.rs, with the passings: a thread passes the last two once when it takes its number. */
const repairSteps = { 16: 1, 17: 1, 18: 2, 19: 2 };
const parties = ['commit', 'repair'];
/** Time for a wake-up after a death: more than the bar. */
const settleMs = 150;
const cellCount = 6;
const amount = 100;

const bar = (contender, figure, says, limit) => ({
  says: `${says} (${contender})`,
  figure,
  of: { setting, contender },
  ...limit,
});

export default {
  figures: {
    fewestKills: counted('kills at the step with the fewest', 'workers'),
    recoveries: counted('commits that others undid or completed', 'commits'),
    wrong: counted('sums and cells that are wrong, and wake-ups that did not come', 'faults'),
    blockedMs: millis('longest transaction after a death'),
    wakeMs: millis('longest time from the last move before a death to the wake-up'),
  },
  settings: {
    [setting]: {
      says: `${killsAtEach} workers kill themselves at each step of a commit, and of a repair of one`,
    },
  },
  rounds: 1,
  deadlineMs: 600_000,
  runs: runsOf(setting, parties),
  bars: parties.flatMap((party) => [
    bar(party, 'fewestKills', 'kills at each step', { atLeast: killsAtEach }),
    bar(party, 'wrong', 'sums and cells that are wrong', { atMost: 0 }),
    bar(party, 'blockedMs', 'longest transaction after a death', { atMost: 100 }),
    ...(party === 'commit'
      ? [bar(party, 'wakeMs', 'longest time from the last move to the wake-up', { atMost: 100 })]
      : []),
  ]),
  async measure({ contender, scale }) {
    const world = makeWorld();
    const kills = Math.max(1, Math.round(killsAtEach * scale));
    const found = { fewestKills: Infinity, wrong: 0, blockedMs: 0, wakeMs: 0 };
    const steps = contender === 'commit' ? commitSteps : Object.keys(repairSteps);
    const kill = contender === 'commit' ? killInCommit : killInRepair;
    for (const step of steps) {
      let killed = 0;
      for (let turn = 0; turn < kills; turn++) {
        const { isKilled, wakeMs, missed, after } = await kill(world, step, turn);
        if (isKilled) killed++;
        const begun = performance.now();
        world.move(turn);
        found.blockedMs = Math.max(found.blockedMs, performance.now() - begun);
        found.wakeMs = Math.max(found.wakeMs, wakeMs);
        found.wrong += world.faults() + missed;
        await after();
      }
      found.fewestKills = Math.min(found.fewestKills, killed);
    }
    return { ...found, recoveries: stmStats().recoveries };
  },
};

/** Cells whose amounts have one sum, a count of moves, and what moves amounts. */
function makeWorld() {
  const cells = Array.from({ length: cellCount }, (_, at) => tvar({ at, amount }));
  const moves = tvar(0);
  const move = (turn) => {
    atomically(() => {
      const [from, to] = [cells[turn % cellCount], cells[(turn * 5 + 1) % cellCount]];
      if (from === to) return;
      from.update((cell) => ({ ...cell, amount: cell.amount - 1 }));
      to.update((cell) => ({ ...cell, amount: cell.amount + 1 }));
      free(tvar(turn)); // an object that comes and goes
      moves.update((count) => count + 1);
    });
  };
  const faults = () => {
    const found = atomically(() => cells.map((cell) => cell.get()));
    const sum = found.reduce((total, cell) => total + cell.amount, 0);
    return (
      found.filter(({ at }, index) => at !== index).length + (sum === cellCount * amount ? 0 : 1)
    );
  };
  return { moves, move, faults };
}

const mover = (kill) =>
  new Pool({ size: 1, worker: 'process', env: { ...process.env, MANYCORE_STM_KILL: kill } });

/** True: the call of a worker ended with it. */
const hasDied = (run) =>
  run.then(
    () => false,
    ({ code }) => code === 'WORKER_EXITED',
  );

/**
 * A worker moves until it dies at a passing of the step. Each second time a transaction here sleeps until something
 * moves, and nothing else touches the variables until it was woken; otherwise nobody has until the measurement.
 */
async function killInCommit({ moves, move }, step, turn) {
  const pool = mover(`${step}:${1 + ((turn * 7) % 40)}`);
  const stamp = new Float64Array(shared(8).buffer, 0, 1);
  const work = (times) => {
    for (let turn = 0; ; turn++) {
      times[0] = performance.timeOrigin + performance.now();
      move(turn);
    }
  };
  const dies = hasDied(pool.run(work, stamp));
  if (turn % 2 === 0) {
    const isKilled = await dies;
    return { isKilled, wakeMs: 0, missed: 0, after: () => pool.destroy() };
  }
  const controller = new AbortController();
  let lastSeen = moves.peek();
  let wokenAt = 0;
  const sleeper = (async () => {
    for (;;) {
      lastSeen = await atomicallyWhen(
        () => {
          check(moves.get() !== lastSeen);
          return moves.get();
        },
        { signal: controller.signal },
      );
      wokenAt = performance.timeOrigin + performance.now();
    }
  })().catch(() => {});
  const isKilled = await dies;
  // The last move, if it was committed, is seen without anybody who touches it.
  await sleep(settleMs);
  const missed = moves.peek() === lastSeen ? 0 : 1;
  controller.abort();
  await sleeper;
  const wakeMs = Math.max(0, wokenAt - stamp[0]);
  return { isKilled, wakeMs, missed, after: () => pool.destroy() };
}

/** A worker dies behind its commit point; another one, which takes part already, meets its locks and dies as well. */
async function killInRepair({ move }, step) {
  const [dying, repairer] = [mover('8:1'), mover(`${step}:${repairSteps[step]}`)];
  const own = tvar(0);
  await repairer.run(() => own.peek());
  await hasDied(dying.run(() => move(1)));
  const isKilled = await hasDied(repairer.run(() => move(1)));
  const after = () => Promise.all([dying.destroy(), repairer.destroy(), free(own)]);
  return { isKilled, wakeMs: 0, missed: 0, after };
}
