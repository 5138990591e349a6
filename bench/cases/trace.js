// What does each way of counting cost a server that is traced at full load?
// `counters` of a command differs from that of a process: a library in the command counts its calls.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { micros, perSecond, runsOf } from '../lib/figures.js';
import { processCpuUs } from '../lib/processes.js';
import { turnsOf } from '../lib/turns.js';
import { quantile } from '../serve/open-loop.js';
import { startCommand, startServer } from '../serve/servers.js';
import { ensureWrk, runWrk } from '../serve/wrk.js';

const connections = 64;
/** Number of windows, of two seconds each; in each all contenders have a turn. */
const windows = 10;
const windowSeconds = 2;
const warmSeconds = 3;
const command = fileURLToPath(new URL('../../dist/bundle/main.js', import.meta.url));

const methods = ['ebpf', 'raw', 'counters'];
/** Started by `manycore trace --method counters -- …`, and traced all the time. */
const asCommand = 'command-counters';
const contenders = ['untraced', ...methods, asCommand];
/** Minimum of each, as a share of the requests per second without tracing. */
const bars = { ebpf: 0.94, counters: 0.99, [asCommand]: 0.99 };
const app = fileURLToPath(new URL('../serve/hello.js', import.meta.url));

export default {
  figures: { perSecond: perSecond('requests'), cpuUs: micros('CPU per request') },
  settings: {
    'full-load': { says: `plain http, one loop, ${connections} connections that are kept` },
  },
  rounds: 7,
  isTogether: true,
  deadlineMs: 240_000,
  runs: runsOf('full-load', contenders),
  bars: Object.entries(bars).map(([contender, atLeast]) => ({
    says: `requests per second, traced by ${contender} against not traced`,
    figure: 'perSecond',
    of: { setting: 'full-load', contender },
    against: runsOf('full-load', ['untraced']),
    atLeast,
  })),
  async measure({ scale }) {
    ensureWrk();
    const servers = await Promise.all(contenders.map(start));
    for (const server of servers) await load(server, warmSeconds);
    const found = contenders.map(() => []);
    for (let window = 0; window < Math.max(1, windows * scale); window += 1) {
      for (const [at, contender] of turnsOf(contenders, window)) {
        const server = servers[at];
        const isTracedNow = methods.includes(contender);
        const stop = isTracedNow ? await trace(server.pid, contender) : async () => {};
        const before = server.cpuUs();
        const requests = await load(server, windowSeconds);
        const cpuUs = (server.cpuUs() - before) / requests;
        found[at].push({ perSecond: requests / windowSeconds, cpuUs });
        await stop();
      }
    }
    return Object.fromEntries(contenders.map((contender, at) => [contender, medians(found[at])]));
  },
};

async function start(contender) {
  if (contender !== asCommand) return await startServer('plain');
  const flags = ['trace', '--method', 'counters', '--output', '/dev/null'];
  const line = [process.execPath, command, ...flags, '--', process.execPath, app];
  const server = await startCommand(() => line);
  // the server alone, as for the others
  return { ...server, cpuUs: () => server.cpuUs() - processCpuUs(server.pid) };
}

async function load({ port }, seconds) {
  const { requests } = await runWrk(`http://127.0.0.1:${port}/`, { connections, seconds });
  return requests;
}

/** Starts tracing; resolves to the function that stops it. */
async function trace(pid, method) {
  const flags = ['trace', `${pid}`, '--method', method, '--seconds', '60', '--json'];
  const child = spawn(process.execPath, [command, ...flags], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const lines = createInterface({ input: child.stderr })[Symbol.asyncIterator]();
  const { value: line } = await lines.next();
  if (!line?.startsWith('tracing process')) throw new Error(`no trace by ${method}: ${line}`);
  return async () => {
    child.kill('SIGINT');
    const status = await ended;
    if (status !== 0) throw new Error(`the trace by ${method} ended with ${status}`);
  };
}

function medians(samples) {
  const median = (name) =>
    quantile(
      samples.map((sample) => sample[name]),
      0.5,
    );
  return { perSecond: median('perSecond'), cpuUs: median('cpuUs') };
}
