// An HTTPS and an HTTP/2 server, on two ports.
import { createSecureServer } from 'node:http2';
import { createServer } from 'node:https';
import { threadId } from 'node:worker_threads';
import { cert, key } from './certificate.js';

const name = `${process.pid}:${threadId}`;

createServer({ key, cert }, (_request, response) => response.end(name)).listen(0, '127.0.0.1');

createSecureServer({ key, cert }, (request, response) => {
  if (request.url === '/slow') setTimeout(() => response.end(name), 1500);
  else response.end(name);
}).listen(0, '127.0.0.1');
