// Do healthy units survive an hour in which a unit that crashes is deployed again and again, and a random process that
// runs is killed each second?
import { readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Loops } from 'manycore';
import { counted, millis, runsOf } from '../lib/figures.js';

const setting = 'hour';
const contender = 'manycore';
const minutes = 60;
const size = { processes: 3, loops: 2 };
const units = 3;
const instances = 4;
const killEveryMs = 1000;
const lookEveryMs = 20;
/** Ways to crash, each by an instance of its own. */
const crashes = ['exit', 'throw', 'throwInStart'];

const bar = (figure, says, atMost) => ({
  says,
  figure,
  of: { setting, contender },
  atMost,
});

export default {
  figures: {
    lost: counted('healthy instances that are not back, or were given up', 'instances'),
    wrong: counted('requests with a wrong answer, or an error of no known kind', 'requests'),
    longestMs: millis('longest time without a healthy instance'),
    outages: counted('times that a healthy instance was lost', 'times'),
    kills: counted('processes killed', 'processes'),
    given: counted('crashing units that were given up', 'units'),
    answered: counted('requests answered', 'requests'),
    processes: counted('processes at the end', 'processes'),
    descriptors: counted('descriptors of the program at the end', 'descriptors'),
  },
  settings: {
    [setting]: {
      says: `${units} units of ${instances} instances on ${size.processes} × ${size.loops} loops, for ${minutes} minutes`,
    },
  },
  rounds: 1,
  deadlineMs: (minutes + 2) * 60_000,
  runs: runsOf(setting, [contender]),
  bars: [
    bar('lost', 'an hour of kills and crashes: healthy instances lost', 0),
    bar('longestMs', 'an hour of kills and crashes: longest time without an instance, in ms', 2000),
    bar('wrong', 'an hour of kills and crashes: wrong answers', 0),
  ],
  async measure({ scale }) {
    const loops = new Loops(size);
    const healthy = await Promise.all(
      Array.from({ length: units }, (_, unit) =>
        loops.deploy(
          ({ bus, instance }) => {
            bus.consumer(`${unit}.${instance}`, () => {});
            bus.consumer(`any ${unit}`, (message) => message.reply(message.body * 2));
          },
          { instances, name: `healthy ${unit}` },
        ),
      ),
    );
    const until = performance.now() + minutes * 60_000 * scale;
    const isOver = () => performance.now() >= until;
    const counts = { lost: 0, wrong: 0, longestMs: 0, outages: 0, kills: 0, given: 0, answered: 0 };
    await Promise.all([
      watch(healthy, isOver, counts),
      kill(loops, isOver, counts),
      ask(loops, isOver, counts),
      ...crashes.map((how) => crash(loops, how, isOver, counts)),
    ]);
    const end = performance.now() + 10_000;
    const missing = async () =>
      (await Promise.all(healthy.map((each) => each.status())))
        .flat()
        .filter(({ state }) => state !== 'running').length;
    while ((await missing()) > 0 && performance.now() < end) await sleep(lookEveryMs);
    counts.lost += await missing();
    const processes = new Set((await loops.status()).flatMap(({ pid }) => pid ?? [])).size;
    const descriptors = readdirSync('/proc/self/fd').length;
    await loops.close();
    return { ...counts, processes, descriptors };
  },
};

/** Measures for how long each healthy instance is away. */
async function watch(healthy, isOver, counts) {
  const awaySince = new Map();
  while (!isOver()) {
    const now = performance.now();
    for (const deployment of healthy) {
      for (const { instance, state } of await deployment.status()) {
        const key = `${deployment.id}.${instance}`;
        if (state === 'failed') counts.lost += 1;
        if (state === 'running') {
          const since = awaySince.get(key);
          if (since !== undefined) counts.longestMs = Math.max(counts.longestMs, now - since);
          awaySince.delete(key);
        } else if (!awaySince.has(key)) {
          counts.outages += 1;
          awaySince.set(key, now);
        }
      }
    }
    await sleep(lookEveryMs);
  }
}

async function kill(loops, isOver, counts) {
  while (!isOver()) {
    await sleep(killEveryMs);
    const pids = runningOf(await loops.status());
    if (pids.length === 0) continue;
    process.kill(pids[Math.floor(Math.random() * pids.length)], 'SIGKILL');
    counts.kills += 1;
  }
}

/** Processes of which all loops are ready: each outage is one loss, not several in a row. */
function runningOf(loops) {
  const starting = new Set(loops.filter(({ state }) => state === 'starting').map(({ pid }) => pid));
  return [...new Set(loops.flatMap(({ pid }) => pid ?? []))].filter((pid) => !starting.has(pid));
}

/** Codes of requests whose consumer was lost. */
const losses = new Set(['BUS_CONSUMER_LOST', 'BUS_NO_HANDLERS', 'BUS_TIMEOUT']);

async function ask(loops, isOver, counts) {
  for (let number = 0; !isOver(); number += 1) {
    try {
      const { body } = await loops.bus.request(`any ${number % units}`, number);
      if (body === number * 2) counts.answered += 1;
      else counts.wrong += 1;
    } catch ({ code }) {
      if (!losses.has(code)) counts.wrong += 1;
    }
    await sleep(1);
  }
}

/** Deploys a unit that crashes, until it is given up; then another one. */
async function crash(loops, how, isOver, counts) {
  while (!isOver()) {
    try {
      const deployment = await loops.deploy(crashing, { name: how, config: how });
      await Promise.race([deployment.ended, sleep(30_000)]);
    } catch ({ code }) {
      if (code === 'UNIT_FAILED') counts.given += 1;
      else if (code !== 'UNIT_START_FAILED') counts.wrong += 1;
    }
    for (const each of loops.deployments) {
      if (each.name === how) await each.undeploy().catch(() => {});
    }
    await sleep(100);
  }
}

function crashing({ config }) {
  if (config === 'throwInStart') throw new Error('no start');
  setTimeout(
    () => {
      if (config === 'exit') process.exit(7);
      throw new Error('crashed');
    },
    50 + Math.random() * 200,
  );
}
