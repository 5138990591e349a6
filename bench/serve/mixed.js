// Light requests, and heavy ones that compute for 100 ms: with HEAVY=parallel in a worker.
import { createServer } from 'node:http';

function compute() {
  const end = performance.now() + 100;
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
  if (request.url === '/heavy') await heavy();
  response.end('done');
}).listen(Number(process.env.PORT), '127.0.0.1');
