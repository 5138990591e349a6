// A node that runs durable tasks until it is killed, or its parent ends: `soak-node.js URL SECRET WORKERS`.
import { setTimeout as sleep } from 'node:timers/promises';
import { cluster } from 'manycore';

const [, , nats, secret, workers] = process.argv;
process.on('disconnect', () => process.exit());

/** Joins as soon as there is a server that takes tasks. */
for (let isReady = false; !isReady; ) {
  try {
    const node = await cluster({ nats, secret });
    await node.lendWorkers(Number(workers), { durable: true });
    isReady = true;
  } catch {
    await sleep(100);
  }
}
process.send('ready');
