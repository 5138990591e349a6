// Starts a durable task and is killed before a node runs it: `caller.js URL SECRET ID FILE`.

import { createCopy, EventBus } from '../../../src/bus/index.js';
import { fillClusterOptions, joinCluster } from '../../../src/cluster/index.js';
import { Pool, task } from '../../../src/public.js';

const [, , nats = '', secret, id = '', file = ''] = process.argv;
const bus = new EventBus({ copy: createCopy() });
const cluster = await joinCluster(bus, fillClusterOptions({ nats, secret }));
const note = task<(file: string, line: string) => string>(
  new URL('./tasks.js', import.meta.url),
  'note',
);
void new Pool({ cluster }).with({ durable: { id } }).run(note, file, 'once');
setInterval(() => {}, 1000); // until it is killed
