// A program behind Node's own cluster: `cluster.js COUNT PROGRAM`. At SIGHUP its workers are replaced one
// by one, as its documentation has it: the new one listens before the old one is disconnected. SIGTTIN
// starts one more, SIGTTOU disconnects the oldest.
import cluster from 'node:cluster';
import { once } from 'node:events';
import { pathToFileURL } from 'node:url';

const [, , count, program] = process.argv;
if (cluster.isPrimary) {
  for (let worker = 0; worker < Number(count); worker += 1) cluster.fork();
  process.on('SIGHUP', async () => {
    for (const old of Object.values(cluster.workers)) {
      await once(cluster.fork(), 'listening');
      old.disconnect();
    }
  });
  process.on('SIGTTIN', () => cluster.fork());
  const leaving = new Set();
  process.on('SIGTTOU', () => {
    const oldest = Object.values(cluster.workers).find((worker) => !leaving.has(worker));
    leaving.add(oldest);
    oldest.disconnect();
  });
} else {
  await import(pathToFileURL(program).href);
}
