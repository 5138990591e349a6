// One of the processes of `no-parent`: maps its share of a workload in a loop, without messages in between.
// It notifies its parent when it is warm, begins on command, and answers with its figures. Arguments: the
// workload, its index, the number of processes, warm-up and window in ms.
import { once } from 'node:events';
import { watchGc } from './gc.js';
import { checkResults, repeat } from './measure.js';
import { allocateHere, openWorkload } from './workloads/index.js';

const [name, ...numbers] = process.argv.slice(2);
const [index, processes, warmMs, windowMs] = numbers.map(Number);
const isMine = (_, at) => at % processes === index;
const { items, map } = await openWorkload(name, allocateHere, isMine);
const run = () => items.map(map);
const readGcMs = watchGc();

checkResults({ items, map }, (await repeat(run, warmMs)).results);
const gcBeforeMs = await readGcMs();
process.send('warm');
await once(process, 'message');
const cpuBefore = process.cpuUsage();
const { runs, tookMs } = await repeat(run, windowMs);
const { user, system } = process.cpuUsage(cpuBefore);
const gcTookMs = (await readGcMs()) - gcBeforeMs;
process.send({ mapped: runs * items.length, tookMs, cpuUs: user + system, gcTookMs });
