// Measured servers: one program, run in different ways. Each runs in a process tree of its own, whose CPU
// time is its cost.
import { spawn } from 'node:child_process';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ensureInstalled } from '../lib/install.js';
import { descendants, processCpuUs } from '../lib/processes.js';
import { ensureVertx, vertxClasses } from '../loops/vertx.js';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

const since = (line) =>
  process.versions.node.localeCompare(line, undefined, { numeric: true }) >= 0;
/** Node's own SO_REUSEPORT, and the least version that Watt runs on. */
export const hasReusePort = since('22.12');
export const hasWatt = since('22.19');

/**
 * Returns the arguments of `node` that run a program of this folder: `plain`, `cluster-LOOPS`,
 * `reuse-port-threads-LOOPS` and `reuse-port-processes-LOOPS` (each loop with a socket of its own), `pm2-2`,
 * `watt-2` (two loops each), `manycore-PROCESSESxLOOPS`, without rescue
 * `manycore-PROCESSESxLOOPS-no-rescue`, `unit-INSTANCES` (hello.js as a unit). Those of `vertx-INSTANCES` are Java's.
 */
function commandOf(contender, program) {
  const app = here(program);
  if (contender === 'pm2-2') return [rival('pm2-runtime'), 'start', app, '-i', '2'];
  if (contender === 'watt-2') return [rival('wattpm'), 'start', here('rivals/watt')];
  const [, processes, loops, without] = /^manycore-(\d+)x(\d+)(-no-rescue)?$/.exec(contender) ?? [];
  if (processes !== undefined) {
    const flags = ['-P', processes, '-L', loops, ...(without ? ['--no-rescue'] : [])];
    return [here('../../dist/bundle/main.js'), 'serve', ...flags, app];
  }
  const [, instances] = /^unit-(\d+)$/.exec(contender) ?? [];
  if (instances !== undefined) {
    const size = ['--processes', '1', '--loops', '2', '--instances', instances];
    return [here('../../dist/bundle/main.js'), 'run', here('hello-unit.js'), ...size];
  }
  if (contender === 'plain') return [app];
  const [, loopsOf, number] = /^reuse-port-(threads|processes)-(\d+)$/.exec(contender) ?? [];
  if (loopsOf !== undefined) return [here('reuse-port.js'), loopsOf, number, app];
  return [here('cluster.js'), contender.replace('cluster-', ''), app];
}

const vertx = /^vertx-(\d+)$/;

/** The whole command line. */
function argvOf(contender, program) {
  const [, instances] = vertx.exec(contender) ?? [];
  if (instances === undefined) return [process.execPath, ...commandOf(contender, program)];
  ensureVertx();
  return ['java', '-cp', vertxClasses(), 'Hello', instances];
}

/** A program of rivals/package.json. */
export function rival(name) {
  ensureInstalled(here('rivals'), `.bin/${name}`);
  return here(`rivals/node_modules/.bin/${name}`);
}

/** PM2 has a folder of its own. */
export const pm2Environment = {
  ...process.env,
  PM2_HOME: join(tmpdir(), `manycore-bench-pm2-${process.pid}`),
};

/** Environment of rivals; Watt's configuration reads the program from it. */
function environmentOf(contender, program) {
  if (contender === 'pm2-2') return pm2Environment;
  if (contender === 'watt-2') return { PROGRAM: here(program) };
  return {};
}

const startLimitMs = 20_000;
const mostServers = 12;
let started = 0;

/** Starts one; resolves as `startCommand` does. */
export function startServer(contender, program = 'hello.js', env = {}) {
  const own = environmentOf(contender, program);
  return startCommand(() => argvOf(contender, program), {
    ...own,
    ...env,
  });
}

/**
 * Starts the server with the command that `commandFor` returns for a port. Resolves once it answers, to `{
 * port, pid, cpuUs }`. It ends with this process's group.
 */
export async function startCommand(commandFor, env = {}) {
  const port = 20_000 + (process.pid % 1000) * mostServers + (started % mostServers); // below those of clients
  started += 1;
  const [command, ...args] = commandFor(port);
  const child = spawn(command, args, {
    env: { ...process.env, PORT: String(port), ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const end = performance.now() + startLimitMs;
  while (!(await isListening(port))) {
    if (performance.now() > end) throw new Error(`${command} does not listen on ${port}`);
    await sleep(20);
  }
  const cpuUs = () =>
    [child.pid, ...descendants(child.pid)].reduce((sum, pid) => sum + processCpuUs(pid), 0);
  return { port, pid: child.pid, cpuUs };
}

function isListening(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
