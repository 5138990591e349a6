// A machine that lends hosts, until it is killed: `worker.js URL SECRET HOSTS`.

import { createCopy, EventBus } from '../../../src/bus/index.js';
import { fillClusterOptions, joinCluster } from '../../../src/cluster/index.js';

const [, , nats = '', secret, hosts] = process.argv;
const bus = new EventBus({ copy: createCopy() });
const cluster = await joinCluster(bus, fillClusterOptions({ nats, secret }));
cluster.lendHosts(Number(hosts));
await bus.drained();
process.on('SIGTERM', () => void cluster.close());
process.send?.('ready');
