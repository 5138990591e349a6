// The performance test of Vert.x's first article: a server that says hello, as 1, 2, 4 and 8 instances of a
// unit, with a load client and a counter as units on the same bus. Prints how many requests it answers, with
// all loops of the server in one process and in several.
//
//   node examples/verticles/main.js [SECONDS [INSTANCES...]]     default: 2 for each number, 1 2 4 8
import { setTimeout as wait } from 'node:timers/promises';
import { Loops } from 'manycore';

const [seconds = 2, ...asked] = process.argv.slice(2).map(Number);
const connections = 32;
const unit = (name) => new URL(`./${name}.js`, import.meta.url);

/** Requests per second of so many instances, on loops in so many processes. */
async function measure(instances, processes) {
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

console.log('instances   one process   several processes   (requests per second)');
for (const instances of asked.length > 0 ? asked : [1, 2, 4, 8]) {
  const one = await measure(instances, 1);
  const several = await measure(instances, Math.min(instances, 4));
  console.log(
    `${String(instances).padStart(9)}${String(one).padStart(14)}${String(several).padStart(20)}`,
  );
}
