// Light requests, and heavy ones: `/heavy` computes for 100 ms, with HEAVY=parallel in a worker, and `/busy?MS` for
// so many in the loop.
import { createServer } from 'node:http';

function compute(ms = 100) {
  const end = performance.now() + ms;
  let sum = 0;
  while (performance.now() < end) sum += Math.sqrt(sum + 1);
  return sum;
}

let heavy = compute;
if (process.env.HEAVY === 'parallel') {
  const { parallel } = await import('../../dist/bundle/index.js');
  heavy = parallel(compute);
}

createServer(async (request, response) => {
  const [path, ms] = request.url.split('?');
  if (path === '/heavy') await heavy();
  if (path === '/busy') compute(Number(ms));
  response.end('done');
}).listen(Number(process.env.PORT), '127.0.0.1');
