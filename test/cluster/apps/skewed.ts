// A program whose clock is off: `skewed.js URL SECRET MS`. In the cluster `caller` it calls, and sends what became of
// that; in the cluster `worker` others call it, until it is killed.

import { createCopy, EventBus } from '../../../src/bus/index.js';
import { fillClusterOptions, joinCluster } from '../../../src/cluster/index.js';
import { callAll } from '../calls.js';

const [, , nats = '', secret, aheadMs] = process.argv;
const now = Date.now.bind(Date);
Date.now = () => now() + Number(aheadMs);
const join = async (name: string) => {
  const bus = new EventBus({ copy: createCopy() });
  return { bus, cluster: await joinCluster(bus, fillClusterOptions({ nats, secret, name })) };
};
const [caller, worker] = [await join('caller'), await join('worker')];
worker.bus.consumer('echo', (message) => message.reply(message.body));
await worker.cluster.lendWorkers(1, { durable: true });
await worker.bus.drained();
process.send?.('ready');
process.send?.(await callAll(caller));
