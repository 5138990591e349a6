// Does a server die of a signal that comes when it answers already, while its other processes still start?
// Each server gets the signal within 100 ms after its first answer.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { get } from 'node:http';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { counted, runsOf } from '../lib/figures.js';
import { descendants } from '../lib/processes.js';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const servers = 100;
const processes = 4;
const latestMs = 100;
const contender = 'manycore';
/** True: the server has to serve on, with all its processes. */
const settings = {
  HUP: { says: `${servers} servers of ${processes} processes get an early SIGHUP`, serves: true },
  TERM: { says: 'the same with SIGTERM, which ends them with 0' },
  INT: { says: 'the same with SIGINT, which ends them with 0' },
};

export default {
  figures: {
    died: counted('died, or ended otherwise than with 0', 'servers'),
    early: {
      says: 'got the signal before all processes served',
      unit: 'servers',
      better: 'higher',
    },
  },
  settings: Object.fromEntries(
    Object.entries(settings).map(([name, { says }]) => [name, { says }]),
  ),
  rounds: 1,
  deadlineMs: 600_000,
  runs: Object.keys(settings).flatMap((setting) => runsOf(setting, [contender])),
  bars: Object.keys(settings).map((setting) => ({
    says: `early SIG${setting}, ${servers} servers of ${processes} processes: died`,
    figure: 'died',
    of: { setting, contender },
    atMost: 0,
  })),
  async measure({ setting, scale }) {
    const counts = { died: 0, early: 0 };
    for (let server = 0; server < Math.round(servers * scale); server += 1) {
      await measureOne(setting, (server / servers) * latestMs, counts);
    }
    return counts;
  },
};

/** Starts a server, sends it the signal, and at last SIGTERM; adds what came of it to `counts`. */
async function measureOne(setting, afterMs, counts) {
  const port = await freePort();
  const command = [here('../../dist/bundle/main.js'), 'serve', here('../serve/hello.js')];
  const child = spawn(process.execPath, [...command, '-P', String(processes)], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  const exited = once(child, 'exit');
  const isRunning = () => child.exitCode === null && child.signalCode === null;
  while (isRunning() && !(await answers(port))) await sleep(5);
  await sleep(afterMs);
  // The command prints it once all its processes serve.
  if (!output.includes('listening on')) counts.early += 1;
  child.kill(`SIG${setting}`);
  if (settings[setting].serves === true) {
    const end = performance.now() + 30_000;
    const isServing = async () =>
      output.includes('listening on') &&
      descendants(child.pid).length === processes &&
      (await answers(port));
    while (isRunning() && !(await isServing())) {
      if (performance.now() > end) throw new Error(`not ${processes} processes in time: ${output}`);
      await sleep(20);
    }
    child.kill('SIGTERM');
  }
  const [code, signal] = await exited;
  if (code === 0) return;
  counts.died += 1;
  console.error(`SIG${setting} after ${afterMs} ms: exit ${code ?? signal}: ${output}`);
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

function answers(port) {
  return new Promise((resolve) => {
    get({ port, host: '127.0.0.1', agent: false }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode === 200));
      response.on('error', () => resolve(false));
    }).on('error', () => resolve(false));
  });
}
