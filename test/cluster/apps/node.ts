// A node that answers with its process number, until it is killed: `node.js URL SECRET`.

import { createCopy, EventBus } from '../../../src/bus/index.js';
import { fillClusterOptions, joinCluster } from '../../../src/cluster/index.js';

const [, , nats = '', secret] = process.argv;
const bus = new EventBus({ copy: createCopy() });
await joinCluster(bus, fillClusterOptions({ nats, secret }));
bus.consumer('who', (message) => message.reply(process.pid));
bus.consumer('never', () => {});
await bus.drained();
process.send?.('ready');
