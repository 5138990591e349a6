// Pairs of event loops that exchange messages, by name: `{ measure(kind, ms) }`, which runs on the sending
// side.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Worker } from 'node:worker_threads';
import { ensureVertx, vertxClasses } from './vertx.js';

export async function openLoops(contender) {
  if (contender === 'vertx') return openVertx();
  if (contender === 'message-port') return openPort();
  const [processes, loops] = contender === 'manycore-process' ? [2, 1] : [1, 2];
  return openManycore({ processes, loops });
}

async function openManycore(size) {
  const { Loops } = await import('manycore');
  const { client, server } = await import('./units.js');
  const loops = new Loops(size);
  await loops.deploy(server);
  await loops.deploy(client); // on the other loop
  return {
    loops,
    measure: async (kind, ms) => {
      const { body } = await loops.bus.request('measure', { kind, ms }, { timeoutMs: 60_000 });
      return body;
    },
  };
}

/** Two workers with a channel of their own, as one would do it by hand. */
async function openPort() {
  const { port1, port2 } = new MessageChannel();
  const open = (end, port) =>
    new Worker(new URL('./port-end.js', import.meta.url), {
      workerData: { end, port },
      transferList: [port],
    });
  open('server', port1);
  const client = open('client', port2);
  await once(client, 'message');
  return {
    measure: async (kind, ms) => {
      client.postMessage({ kind, ms });
      return (await once(client, 'message'))[0];
    },
  };
}

async function openVertx() {
  ensureVertx();
  const java = spawn('java', ['-cp', vertxClasses(), 'BusBench'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: java.stdout })[Symbol.asyncIterator]();
  await lines.next();
  return {
    measure: async (kind, ms) => {
      java.stdin.write(`${kind} ${ms}\n`);
      return JSON.parse((await lines.next()).value);
    },
  };
}
