// An HTTPS and an HTTP/2 server, on two ports. `/drained` is answered half a second after a drain has begun.

import { subscribe } from 'node:diagnostics_channel';
import { createSecureServer } from 'node:http2';
import { createServer } from 'node:https';
import { threadId } from 'node:worker_threads';
import { cert, key } from './certificate.js';

const name = `${process.pid}:${threadId}`;

createServer({ key, cert }, (_request, response) => response.end(name)).listen(0, '127.0.0.1');

createSecureServer({ key, cert }, (request, response) => {
  const answerIn = (ms: number) => setTimeout(() => response.end(name), ms);
  if (request.url === '/slow') answerIn(1500);
  else if (request.url === '/drained') subscribe('manycore:server:drain', () => answerIn(500));
  else response.end(name);
}).listen(0, '127.0.0.1');
