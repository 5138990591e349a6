// Nodes with durable tasks on a NATS server, each a process that may be killed.
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { cluster, Pool, task } from 'manycore';
import { natsServer } from '../../scripts/lib/debian-program.mjs';
import { freePort } from './ends.js';

const nodeProgram = fileURLToPath(new URL('./soak-node.js', import.meta.url));
const secret = 'a secret of the benchmark';

/** Resolves when the server answers. */
async function answers(port) {
  for (;;) {
    const socket = connect(port, '127.0.0.1');
    try {
      await once(socket, 'data', { signal: AbortSignal.timeout(1000) });
      return;
    } catch {
      await sleep(20);
    } finally {
      socket.destroy();
    }
  }
}

/** `run(n, file, ms)` runs one task, see soak-task.js. */
export async function openSoak({ nodes, workers }) {
  const program = await natsServer();
  if (program === undefined) throw new Error('this case needs nats-server: apt-get install it');
  const folder = mkdtempSync(join(tmpdir(), 'manycore-soak-'));
  const port = await freePort();
  const url = `nats://127.0.0.1:${port}`;
  const startServer = async () => {
    const flags = ['-js', '-a', '127.0.0.1', '-p', String(port), '-sd', join(folder, 'store')];
    const started = spawn(program, flags, { stdio: 'ignore' });
    await answers(port);
    return started;
  };
  const running = new Set();
  const ready = new Set();
  const startNode = () => {
    const node = fork(nodeProgram, [url, secret, String(workers)]);
    running.add(node);
    node.once('message', () => ready.add(node));
    return node;
  };
  const kill = async (child) => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  let server = await startServer();
  await Promise.all(Array.from({ length: nodes }, () => once(startNode(), 'message')));
  const joined = await cluster({ nats: url, secret });
  const pool = new Pool({ cluster: joined });
  const target = task(new URL('./soak-task.js', import.meta.url), 'double');
  return {
    folder,
    run: (n, file, ms) => pool.with({ durable: { id: `soak-${n}` } }).run(target, n, file, ms),
    /** Kills a random node that works, unless it is the only one, and starts another one; returns its pid. */
    killNode: async () => {
      if (ready.size < 2) return undefined;
      const node = [...ready][Math.floor(Math.random() * ready.size)];
      ready.delete(node);
      running.delete(node);
      startNode();
      await kill(node);
      return node.pid;
    },
    /** Kills the server, and starts it again with its store. */
    restartServer: async () => {
      await kill(server);
      server = await startServer();
    },
    close: async () => {
      await pool.destroy();
      await joined.close();
      await Promise.all([...running, server].map(kill));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
