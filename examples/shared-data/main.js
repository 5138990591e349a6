// Two loops in two processes write the same three reports, each report once: a lock lets one of them write at a
// time, a map has what is written, a counter its number. With `await cluster({ nats })` before `deploy`, the
// loops of several machines do the same.
//   node examples/shared-data/main.js

import { Loops, sharedCounter, sharedMap } from 'manycore';

const loops = new Loops({ processes: 2, loops: 1 });
await loops.deploy(new URL('./writer.js', import.meta.url), { instances: 2 });

const reports = sharedMap('reports');
let seen = 0;
for await (const { key } of reports.watch()) {
  seen += 1;
  console.log(`${key} is written`);
  if (seen === 3) break;
}
await loops.close();
console.log(
  `${await sharedCounter('reports written').get()} reports, ${await reports.size()} days`,
);
