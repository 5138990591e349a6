// A server that keeps some 45 MiB alive and makes garbage: under a limit near that it mostly collects.
import { createServer } from 'node:http';

const kept = Array.from({ length: 400_000 }, (_, at) => ({ at, name: `entry ${at}` }));

createServer((request, response) => {
  const some = Array.from({ length: 5000 }, (_, at) => ({ at, of: request.url, like: kept[at] }));
  // Replaces some of the kept objects, so that garbage gets old.
  for (const [at, each] of some.entries()) {
    if (at % 10 === 0) kept[(at * 79) % kept.length] = { at: each.at, name: `entry ${each.of}` };
  }
  response.end(String(some.length));
}).listen(Number(process.env.PORT));
