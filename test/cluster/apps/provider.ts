// A machine that works for its cluster, until it is killed: `provider.js URL SECRET WORKERS [durable | MODULE]`. An
// empty secret is none.

import { createCopy, EventBus } from '../../../src/bus/index.js';
import { fillClusterOptions, joinCluster } from '../../../src/cluster/index.js';
import { announcements } from '../../../src/lib/index.js';

const [, , nats = '', secret, workers, tasks] = process.argv;
const bus = new EventBus({ copy: createCopy() });
const cluster = await joinCluster(bus, fillClusterOptions({ nats, secret: secret || undefined }));
const modules = tasks === undefined || tasks === 'durable' ? undefined : [tasks];
await cluster.lendWorkers(Number(workers), { durable: tasks !== undefined, modules });
await bus.drained();
// No worker starts until a message arrives.
if (process.env['MANYCORE_TEST_SICK'] !== undefined) {
  process.env['NODE_OPTIONS'] = '--no-such-flag';
  announcements.clusterRefused.subscribe((message) => process.send?.(Object(message).why));
  process.on('message', () => delete process.env['NODE_OPTIONS']);
}
process.on('SIGTERM', () => void cluster.close());
process.send?.('ready');
