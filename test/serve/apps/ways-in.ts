// Listens for plain HTTP, and for one more kind of client, which its argument names; all are answered with the loop.
// `/?until=FILE` makes `FILE.begun` and computes until the file exists. `/open` is answered to its end with the next request of its
// connection.

import { existsSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttp2, createSecureServer } from 'node:http2';
import { createServer as createHttps } from 'node:https';
import { createServer as createNet, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { threadId } from 'node:worker_threads';
import { cert, key } from './certificate.js';

const loop = `${process.pid}:${threadId}`;
const opened = new WeakMap<Socket, ServerResponse>();

function answer(request: IncomingMessage, response: ServerResponse): void {
  const { socket, url = '/' } = request;
  opened.get(socket)?.end();
  if (url === '/open') {
    response.write(loop);
    opened.set(socket, response);
    return;
  }
  const until = new URL(url, 'http://a').searchParams.get('until');
  if (until !== null) writeFileSync(`${until}.begun`, '');
  while (until !== null && !existsSync(until));
  request.resume().on('end', () => response.end(loop));
}

const echo = (socket: Duplex): void => {
  socket.on('data', () => socket.write(`${loop}\r\n`)).on('error', () => {});
  socket.on('end', () => socket.end());
};
// Idle connections stay while a busy machine holds up the test.
const options = { cert, key, keepAliveTimeout: 600_000 };
const [, , kind = '', path = ''] = process.argv;
const inner = createServer(options, answer);

createServer(options, answer)
  .on('upgrade', (_request, socket) => {
    socket.write(`HTTP/1.1 101 Fine\r\nConnection: Upgrade\r\nUpgrade: loop\r\n\r\n`);
    echo(socket);
  })
  .listen(0);

if (kind === 'tls') createHttps(options, answer).listen(0);
if (kind === 'h2') createSecureServer(options, (_, response) => response.end(loop)).listen(0);
if (kind === 'h2c') createHttp2((_, response) => response.end(loop)).listen(0);
if (kind === 'net') createNet(echo).listen(0);
if (kind === 'given') createNet((socket) => void inner.emit('connection', socket)).listen(0);
if (kind === 'unix') createServer(options, answer).listen(path);
