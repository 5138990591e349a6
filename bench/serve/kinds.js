// A program for every kind of client (client-kinds.js): HTTP, HTTPS, HTTP/2 and a Unix socket, in this order.
// Plain Node, without manycore. UNIX_PATH names the path of the last.
import { createServer } from 'node:http';
import { createSecureServer } from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocketServer } from 'ws';

const { CERT: cert, KEY: key, UNIX_PATH: path } = process.env;
const pieces = 6;
const pieceMs = 50;

const sockets = new WebSocketServer({ noServer: true });
sockets.on('connection', (socket) => {
  socket.on('message', (text) => socket.send(String(text)));
});

async function answer(request, response) {
  const { pathname, searchParams } = new URL(request.url, 'http://localhost');
  switch (pathname) {
    case '/upload': {
      let bytes = 0;
      for await (const chunk of request) bytes += chunk.length;
      response.end(`got ${bytes}`);
      break;
    }
    case '/download':
      for (let piece = 0; piece < pieces; piece += 1) {
        response.write('x'.repeat(10_000));
        await sleep(pieceMs);
      }
      response.end();
      break;
    case '/events':
      response.setHeader('content-type', 'text/event-stream');
      for (let piece = 0; piece < pieces; piece += 1) {
        response.write(`data: ${piece}\n\n`);
        await sleep(pieceMs);
      }
      response.end('data: end\n\n');
      break;
    case '/block': {
      const end = performance.now() + Number(searchParams.get('ms'));
      while (performance.now() < end);
      response.end('hello');
      break;
    }
    default:
      response.end('hello');
  }
}

createServer(answer)
  .on('upgrade', (request, socket, head) => {
    sockets.handleUpgrade(request, socket, head, (client) => sockets.emit('connection', client));
  })
  .listen(0, '127.0.0.1');
createHttpsServer({ cert, key }, answer).listen(0, '127.0.0.1');
createSecureServer({ cert, key }, answer).listen(0, '127.0.0.1');
createServer(answer).listen(path);
