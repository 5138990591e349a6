// A program on a machine of a test's network, controlled by the test: `member.js OPTIONS`, the options of
// `cluster` in JSON. Functions arrive as text, and are called with the objects below. The library itself
// cannot be used for that: the test is on no machine of the network. The test's side is ../member.ts.

import { createCopy, EventBus } from '../../../src/bus/index.js';
import { fillClusterOptions, joinCluster } from '../../../src/cluster/index.js';
import { announcements } from '../../../src/lib/index.js';
import { Pool } from '../../../src/public.js';
import type { Inside, Told } from '../member.js';

const bus = new EventBus({ copy: createCopy() });
const cluster = await joinCluster(bus, fillClusterOptions(JSON.parse(process.argv[2] ?? '')));
const told: Told[] = [];
cluster.on('join', ({ pid }) => void told.push({ type: 'join', pid }));
cluster.on('leave', ({ pid }) => void told.push({ type: 'leave', pid }));
announcements.clusterLost.subscribe((lost) => told.push({ type: 'lost', ...Object(lost) }));
announcements.clusterBack.subscribe(() => told.push({ type: 'back' }));
announcements.clusterRefused.subscribe((refused) => {
  told.push({ type: 'refused', ...Object(refused) });
});
const inside: Inside = { bus, cluster, Pool, told, kept: {} };

process.on('message', async (message) => {
  const { id, source, args } = Object(message);
  const answer = await work(source, args).then(
    (result) => ({ result }),
    ({ code, stack }) => ({ code, stack }),
  );
  process.send?.({ id, ...answer });
});
process.on('disconnect', () => process.exit());
process.send?.('ready');

async function work(source: string, args: unknown[]): Promise<unknown> {
  return await new Function(`return ${source}`)()(inside, ...args);
}
