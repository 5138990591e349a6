// Servers of HTTP, HTTPS and HTTP/2 whose connections are kept for a minute.
import { createServer, type RequestListener } from 'node:http';
import { createSecureServer } from 'node:http2';
import { createServer as createHttps } from 'node:https';
import { cert, key } from './certificate.js';

const listener: RequestListener = (_request, response) => response.end('answer');
const servers = [
  createServer(listener),
  createHttps({ key, cert }, listener),
  createSecureServer({ key, cert, allowHTTP1: true }, listener as never),
];
for (const server of servers) {
  Reflect.set(server, 'keepAliveTimeout', 60_000);
  server.on('upgrade', (_request, socket) => {
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n',
    );
    socket.pipe(socket);
  });
  server.listen(0, '127.0.0.1');
}
