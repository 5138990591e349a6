// Is each of ten thousand durable tasks done once while workers and the NATS server are killed?
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openSoak } from '../cluster/soak.js';
import { counted, runsOf } from '../lib/figures.js';

const setting = 'kills';
const contender = 'manycore';
/** A smaller number serves trials by hand. */
const tasks = Number(process.env.MANYCORE_SOAK_TASKS ?? 10_000);
const nodes = 3;
const workers = 2;
const taskMs = 20;
const inFlight = 500;
const killNodeEveryMs = 1000;
const killServerEveryMs = 10_000;
/** Time after a kill of the server in which it may give tasks to a second node. */
const backMs = 5000;
/** The rest of the time limit when the wait for the tasks ends. */
const endMs = 120_000;
const minutes = 15;

const none = (figure, says) => ({ says, figure, of: { setting, contender }, atMost: 0 });

export default {
  figures: {
    lost: counted('tasks that did not settle', 'tasks'),
    wrong: counted('tasks with a wrong result, or an error', 'tasks'),
    undocumented: counted(
      'tasks that ran again though neither node nor server was killed',
      'tasks',
    ),
    again: counted('tasks that ran more than once, after a kill', 'tasks'),
    runs: counted('runs of tasks', 'runs'),
    nodeKills: counted('nodes killed', 'nodes'),
    serverKills: counted('servers killed', 'servers'),
    seconds: counted('duration', 's'),
  },
  settings: {
    [setting]: {
      says: `${tasks} tasks of ${taskMs} ms on ${nodes} nodes of ${workers} workers, a node killed each second, the server each ten`,
    },
  },
  rounds: 1,
  deadlineMs: minutes * 60_000,
  runs: runsOf(setting, [contender]),
  bars: [
    none('lost', 'durable tasks under kills: lost'),
    none('wrong', 'durable tasks under kills: wrong'),
    none('undocumented', 'durable tasks under kills: run again without a kill of node or server'),
  ],
  async measure({ scale }) {
    const soak = await openSoak({ nodes, workers });
    const count = Math.round(tasks * scale);
    const counts = { lost: count, wrong: 0 };
    const killed = { nodes: new Set(), servers: [] };
    const began = performance.now();
    let isOver = false;
    const killing = Promise.all([
      repeat(killNodeEveryMs, async () => {
        const pid = await soak.killNode();
        if (pid !== undefined) killed.nodes.add(pid);
      }),
      repeat(killServerEveryMs, async () => {
        killed.servers.push(Date.now());
        await soak.restartServer();
      }),
    ]);
    async function repeat(everyMs, kill) {
      while (!isOver) {
        await sleep(everyMs);
        if (isOver) return;
        await kill();
      }
    }
    const file = join(soak.folder, 'runs');
    const lanes = Array.from({ length: inFlight }, (_, lane) => run(lane));
    async function run(lane) {
      for (let task = lane; task < count; task += inFlight) {
        try {
          if ((await soak.run(task, file, taskMs)) !== task * 2) counts.wrong += 1;
        } catch (error) {
          console.error(error);
          counts.wrong += 1;
        }
        counts.lost -= 1;
      }
    }
    await Promise.race([
      Promise.all(lanes),
      sleep(minutes * 60_000 - endMs, undefined, { ref: false }),
    ]);
    isOver = true;
    await killing;
    const seconds = (performance.now() - began) / 1000;
    const runs = readFileSync(file, 'utf8');
    const settled = { ...counts }; // closing rejects what is open
    await soak.close();
    const kills = { nodeKills: killed.nodes.size, serverKills: killed.servers.length };
    return { ...settled, ...kills, ...countRuns(runs, killed), seconds };
  },
};

/** Counts runs by their lines `TASK TIME NODE`, of which each run writes one at its begin. */
function countRuns(text, { nodes, servers }) {
  const begun = new Map();
  const lines = text.split('\n').slice(0, -1);
  for (const line of lines) {
    const [task, time, node] = line.split(' ').map(Number);
    begun.set(task, [...(begun.get(task) ?? []), { time, node }]);
  }
  const repeated = [...begun.values()].filter(({ length }) => length > 1);
  /** True: before each further run the node of the one before was killed, or the server was. */
  const isDocumented = (runs) =>
    runs.every(({ time }, at) => {
      const before = runs[at - 1];
      if (before === undefined || nodes.has(before.node)) return true;
      return servers.some((kill) => kill >= before.time - backMs && kill <= time);
    });
  const undocumented = repeated.filter((runs) => !isDocumented(runs)).length;
  return { runs: lines.length, again: repeated.length, undocumented };
}
