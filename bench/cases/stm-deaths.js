// Does anybody wait, or see something wrong, when a worker dies at a step of its commit, or of a repair?
// A hundred workers kill themselves at each step. The program then changes the same variables, and a transaction
// that sleeps is to see what the dead worker has committed.
import { Pool } from 'manycore';
import { atomically, atomicallyWhen, check, free, stmStats, tvar } from 'manycore/stm';
import { counted, millis, runsOf } from '../lib/figures.js';

const setting = 'killed';
const killsAtEach = 100;
/** Steps of crates/core/src/stm/commit.rs, the last one of memory.rs. */
const commitSteps = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 31];
/** Steps of recovery.rs, with the passings: a thread passes the last two once when it takes its number. */
const repairSteps = { 16: 1, 17: 1, 18: 2, 19: 2 };
const parties = ['commit', 'repair'];
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
    wrong: counted('sums and cells that are wrong', 'faults'),
    blockedMs: millis('longest transaction after a death'),
    wakeMs: millis('longest time from a death to the wake-up that it was about to send'),
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
      ? [bar(party, 'wakeMs', 'longest time from a death to the wake-up', { atMost: 100 })]
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
        const { isKilled, wakeMs } = await kill(world, step, turn);
        if (isKilled) killed++;
        const begun = performance.now();
        world.move(turn);
        found.blockedMs = Math.max(found.blockedMs, performance.now() - begun);
        found.wakeMs = Math.max(found.wakeMs, wakeMs);
        found.wrong += world.faults();
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

/** A worker moves until it dies at a passing of the step, while a transaction here sleeps until something moves. */
async function killInCommit({ moves, move }, step, turn) {
  const pool = mover(`${step}:${1 + ((turn * 7) % 40)}`);
  let isOver = false;
  let lastSeen = moves.peek();
  let wokenAt = 0;
  const sleeper = (async () => {
    while (!isOver) {
      lastSeen = await atomicallyWhen(() => {
        check(moves.get() !== lastSeen);
        return moves.get();
      });
      wokenAt = performance.now();
    }
  })();
  const work = () => {
    for (let turn = 0; ; turn++) move(turn);
  };
  const isKilled = await hasDied(pool.run(work));
  const diedAt = performance.now();
  await pool.destroy();
  // The sleeper has seen all that the worker has committed, or its wake-up is about to come.
  const last = moves.peek();
  while (lastSeen !== last) await new Promise((resolve) => setTimeout(resolve, 1));
  isOver = true;
  const wakeMs = Math.max(0, wokenAt - diedAt);
  atomically(() => moves.set(last + 1));
  await sleeper;
  return { isKilled, wakeMs };
}

/** A worker dies behind its commit point; another one, which takes part already, meets its locks and dies as well. */
async function killInRepair({ move }, step) {
  const [dying, repairer] = [mover('8:1'), mover(`${step}:${repairSteps[step]}`)];
  const own = tvar(0);
  await repairer.run(() => own.peek());
  await hasDied(dying.run(() => move(1)));
  const isKilled = await hasDied(repairer.run(() => move(1)));
  await Promise.all([dying.destroy(), repairer.destroy()]);
  free(own);
  return { isKilled, wakeMs: 0 };
}
