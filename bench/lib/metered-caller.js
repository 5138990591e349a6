// A program with a pool, for cases/metrics.js. It calls for as many milliseconds as its parent's message has,
// and answers with the calls per second. Arguments: the file of manycore, and `metered` for an endpoint.
import { pathToFileURL } from 'node:url';
import { countCalls } from './measure.js';
import { add } from './tasks.js';

const [file, metering] = process.argv.slice(2);
const { Pool } = await import(pathToFileURL(file));
const pool = new Pool({ size: 2 });
await pool.warm();

async function openMetrics() {
  const { serveMetrics } = await import('manycore/metrics');
  const { url } = await serveMetrics({ port: 0 });
  return url;
}

process.on('message', async (windowMs) => {
  const call = (argument) => pool.run(add, argument);
  const { perSecond } = await countCalls(call, 64, { warmMs: 0, windowMs });
  process.send({ perSecond });
});
process.on('disconnect', () => process.exit());
process.send({ url: metering === 'metered' ? await openMetrics() : undefined });
