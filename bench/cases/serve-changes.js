// What is lost when a server changes under load, and how long does a change take?
// Changes: reloads, changes of size, a killed process, a step in load.
import { execFile } from 'node:child_process';
import { Agent, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { serve } from '../../dist/bundle/serve.js';
import { counted, millis, runsOf } from '../lib/figures.js';
import { descendants } from '../lib/processes.js';
import { pm2Environment, rival, startServer } from '../serve/servers.js';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const changes = 50;
/** A request without an answer for this long is lost, in ms. */
const answerLimitMs = 5000;
const contender = 'manycore';
/** Rivals whose changes are counted too: new workers first, then the old ones leave. */
const peers = ['cluster-2', 'pm2-2'];
const settings = {
  reloads: {
    says: `${changes} reloads of 2 processes, 16 clients, half of them keep their connections`,
  },
  sizes: { says: `${changes} changes between 1 and 3 processes, the same clients` },
  killed: { says: 'one of 2 processes killed, the same clients' },
  step: { says: 'from 1 to 8 processes, when load for 8 begins' },
};

const sizeOf = (change) => 1 + (change % 3);
const peerChanges = { reloads: reload, sizes: resize };

export default {
  figures: {
    failed: counted('failed beyond those in flight', 'requests'),
    answered: { says: 'answered', unit: 'requests', better: 'higher' },
    fullMs: millis('until the size is full again, beyond a start'),
  },
  settings,
  rounds: 3,
  deadlineMs: 600_000,
  runs: Object.keys(settings).flatMap((setting) =>
    runsOf(setting, peerChanges[setting] === undefined ? [contender] : [contender, ...peers]),
  ),
  bars: [
    ...['reloads', 'sizes', 'killed'].map((setting) => ({
      says: `${setting} under load, requests that failed beyond those in flight`,
      figure: 'failed',
      of: { setting, contender },
      atMost: 0,
    })),
    {
      says: 'killed, until the size is full again, beyond the time of a start',
      figure: 'fullMs',
      of: { setting: 'killed', contender },
      atMost: 1000,
    },
    {
      says: 'a step from 1 to 8 loops’ worth, until the size is full',
      figure: 'fullMs',
      of: { setting: 'step', contender },
      atMost: 6000,
    },
  ],
  async measure({ setting, contender: measured }) {
    if (measured !== contender) return await measurePeer(measured, peerChanges[setting]);
    return setting === 'step' ? await measureStep() : await measureChanges(setting);
  },
};

async function measureStep() {
  const server = await serve(here('../serve/sleepy.js'), {
    processes: { min: 1, max: 8 },
    loops: 1,
  });
  const load = keepBusy(server.addresses[0].port, 24);
  const began = performance.now();
  while (server.pids.length < 8) await sleep(20);
  const fullMs = performance.now() - began;
  const { failed, answered } = await load.stop();
  await server.close();
  return { failed, answered, fullMs };
}

async function measureChanges(setting) {
  process.env.PORT = '0';
  const startedMs = performance.now();
  const server = await serve(here('../serve/hello.js'), {
    processes: 2,
    loops: 1,
    maxProcesses: 3,
  });
  const startMs = performance.now() - startedMs;
  const load = keepBusy(server.addresses[0].port, 16);
  await sleep(1000);
  let inFlight = 0;
  let fullMs = 0;
  if (setting === 'killed') {
    const [pid] = server.pids;
    // Each client waiting for an answer loses it, and holds one connection there.
    inFlight = server.status().find((line) => line.pid === pid).openConnections;
    const killedMs = performance.now();
    process.kill(pid, 'SIGKILL');
    while (server.pids.length !== 2 || server.pids.includes(pid)) await sleep(5);
    fullMs = Math.max(0, performance.now() - killedMs - startMs);
    await sleep(1000);
  } else {
    for (let change = 0; change < changes; change += 1) {
      if (setting === 'reloads') await server.reload();
      else await server.scale(sizeOf(change));
      await sleep(100);
    }
  }
  const { failed, answered } = await load.stop();
  await server.close();
  return { failed: Math.max(0, failed - inFlight), answered, fullMs };
}

async function measurePeer(peer, change) {
  const server = await startServer(peer);
  await sleep(1000); // until all its workers listen
  const load = keepBusy(server.port, 16);
  await sleep(1000);
  for (let number = 0; number < changes; number += 1) {
    await change(peer, server, number);
    await sleep(100);
  }
  const { failed, answered } = await load.stop();
  return { failed, answered };
}

/** Resolves when no worker of before runs. */
async function reload(peer, { pid }) {
  if (peer === 'pm2-2') {
    await pm2('reload', 'all');
    return;
  }
  const old = descendants(pid);
  process.kill(pid, 'SIGHUP');
  while (descendants(pid).some((each) => old.includes(each))) await sleep(10);
}

/** Resolves when there are `number` workers. */
async function resize(peer, { pid }, number) {
  const [before, wanted] = [number === 0 ? 2 : sizeOf(number - 1), sizeOf(number)];
  if (peer === 'pm2-2') {
    if (wanted !== before) await pm2('scale', 'hello', String(wanted));
    return;
  }
  const signal = wanted > before ? 'SIGTTIN' : 'SIGTTOU';
  for (let step = 0; step < Math.abs(wanted - before); step += 1) {
    process.kill(pid, signal);
    await sleep(20); // else the system makes one of two
  }
  while (descendants(pid).length !== wanted) await sleep(10);
  if (wanted > before) await sleep(500); // until the new ones listen
}

async function pm2(...args) {
  await promisify(execFile)(process.execPath, [rival('pm2'), ...args], { env: pm2Environment });
}

/** Clients of which every other keeps its connection. */
function keepBusy(port, clients) {
  let isOver = false;
  let answered = 0;
  let failed = 0;
  const run = async (_, index) => {
    const agent = new Agent({ keepAlive: index % 2 === 0, maxSockets: 1 });
    while (!isOver) {
      if (await ask(port, agent)) answered += 1;
      else failed += 1;
    }
    agent.destroy();
  };
  const done = Promise.all(Array.from({ length: clients }, run));
  return {
    stop: async () => {
      isOver = true;
      await done;
      return { answered, failed };
    },
  };
}

function ask(port, agent) {
  return new Promise((resolve) => {
    const asked = get({ port, host: '127.0.0.1', agent, timeout: answerLimitMs }, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode === 200));
      response.on('error', () => resolve(false));
    });
    asked.on('error', () => resolve(false));
    asked.on('timeout', () => asked.destroy());
  });
}
