// The performance test of Vert.x's first article: a hello-world server, as 1, 2, 4 and 8 instances of a unit,
// with a load client and a counter as units on the same bus. Prints the answered requests, with all loops of
// the server in one process and in several; and clustered, if a NATS server is given, or `local`.
//
//   node examples/verticles/main.js [--cluster nats://HOST | local] [SECONDS [INSTANCES...]]     default: 2 for each
//   number, 1 2 4 8
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Loops } from 'manycore';
import { measureClustered } from './clustered.js';

const connections = 32;
const unit = (name) => new URL(`./${name}.js`, import.meta.url);

/** Requests per second of so many instances, on loops in so many processes. */
async function measure({ instances, processes, seconds }) {
  const loops = new Loops({ processes, loops: Math.ceil(instances / processes) });
  const clients = new Loops({ processes: 1, loops: 1 });
  try {
    await loops.deploy(unit('server'), { instances, config: { port: 0 } });
    const [{ port }] = await loops.addresses();
    await clients.deploy(unit('rate'));
    await clients.deploy(unit('client'), { config: { port, connections } });
    await wait(1000); // until the code is compiled
    await clients.bus.request('rate');
    await wait(seconds * 1000);
    return Math.round((await clients.bus.request('rate')).body);
  } finally {
    await Promise.all([loops.close(), clients.close()]);
  }
}

/** Joins a cluster of this program's own. */
async function joinCluster(url) {
  const loops = new Loops();
  const name = `verticles-${randomUUID()}`;
  await loops.join(url === 'local' ? { transport: 'local', name } : { nats: url, name });
  const flags = ['--cluster', url, '--cluster-name', name];
  return { bus: loops.bus, flags, close: () => loops.close() };
}

async function printTable({ seconds, numbers, cluster }) {
  const columns = ['one process', 'several processes', ...(cluster ? ['clustered'] : [])];
  const row = (cells) => cells.map((cell, at) => String(cell).padStart(at === 0 ? 9 : 20)).join('');
  console.log(`${row(['instances', ...columns])}   (requests per second)`);
  for (const instances of numbers) {
    const several = { instances, processes: Math.min(instances, 4), seconds };
    const rates = [await measure({ ...several, processes: 1 }), await measure(several)];
    if (cluster) rates.push(await measureClustered(cluster, { ...several, connections }));
    console.log(row([instances, ...rates]));
  }
}

try {
  const options = { cluster: { type: 'string' } };
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const [seconds = 2, ...numbers] = positionals.map(Number);
  const cluster = values.cluster && (await joinCluster(values.cluster));
  const defaults = [1, 2, 4, 8];
  await printTable({ seconds, numbers: numbers.length > 0 ? numbers : defaults, cluster });
  await cluster?.close();
} catch (error) {
  const isOfCluster = /^(CLUSTER|ERR_PARSE_ARGS)_/.test(error.code);
  if (!isOfCluster) throw error;
  const way = '`nats-server` starts one, and --cluster nats://localhost finds it there';
  console.error(`verticles: ${error.message} (${way})`);
  process.exitCode = 2;
}
