// Listeners of an emitter, run in idle processes; when none is idle they run in this process.
import { EventEmitter } from 'node:events';
import { parallelEvents, warm } from 'manycore';

await warm();
const camera = new EventEmitter();
const home = process.pid;
const report = (text) => process.stdout.write(`${text}\n`);

camera.on('frame', (number) => {
  const until = performance.now() + 20;
  while (performance.now() < until); // decodes for 20 ms
  report(`frame ${number} decoded, in ${process.pid === home ? 'the main process' : 'a worker'}`);
});

const parallelism = parallelEvents(camera, ['frame']);
for (let number = 1; number <= 3; number += 1) {
  camera.emit('frame', number);
  await new Promise((resolve) => setTimeout(resolve, 60));
}
parallelism[Symbol.dispose]();
