// Answers each request with its path, the sum of its body, and its loop. `?block=5`: the loop computes for 5 ms
// first, `?until=FILE`: until that exists; with `early` in its path it is answered before its body. A request that Node's parser refuses ends the process: bytes were lost, or came twice. A client that leaves
// in the middle of one is no such case.

import { existsSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { threadId } from 'node:worker_threads';

/** Ends of connections at this loop. */
const ends = { clean: 0, failed: 0 };
let refused = 0;

function answer(request: IncomingMessage, response: ServerResponse): void {
  if (request.url === '/ends') {
    response.end(JSON.stringify({ ...ends, refused, loop: `${process.pid}:${threadId}` }));
    return;
  }
  if (request.url?.includes('early') === true) {
    response.end(`${request.url} 0 ${process.pid}:${threadId}`); // before the body has come
    return;
  }
  let sum = 0;
  request.on('data', (bytes: Buffer) => {
    for (const byte of bytes) sum += byte;
  });
  request.on('end', () => {
    const { searchParams } = new URL(request.url ?? '/', 'http://a');
    const endMs = performance.now() + Number(searchParams.get('block') ?? 0);
    const until = searchParams.get('until');
    while (performance.now() < endMs || (until !== null && !existsSync(until)));
    response.end(`${request.url} ${sum} ${process.pid}:${threadId}`);
  });
}

// Idle connections stay while a busy machine holds up the test.
const server = createServer({ keepAliveTimeout: 600_000 }, answer);
server.on('clientError', (error: Error & { code?: string }, socket) => {
  refused += 1;
  if (error.code?.startsWith('HPE_') === true && !error.code.includes('EOF')) process.exit(1);
  socket.destroy();
});
server.on('connection', (socket) => {
  socket.on('close', (hasFailed) => {
    ends[hasFailed ? 'failed' : 'clean'] += 1;
  });
});
server.listen(Number(process.env['PORT'] ?? 0));
