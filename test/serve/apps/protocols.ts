// HTTP beside requests and responses.
import { createServer } from 'node:http';

const server = createServer((request, response) => {
  if (request.url === '/upload') {
    let sizeBytes = 0;
    request.on('data', (piece: Buffer) => {
      sizeBytes += piece.length;
    });
    request.on('end', () => {
      response.writeHead(200, { trailer: 'x-checked' });
      response.write(String(sizeBytes));
      response.addTrailers({ 'x-checked': 'yes' });
      response.end();
    });
    return;
  }
  if (request.url === '/events') {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('data: first\n\n');
    request.resume().on('end', () => response.end('data: last\n\n'));
    return;
  }
  response.end(request.url);
});
server.on('upgrade', (_request, socket) => {
  socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n');
  socket.pipe(socket);
});
server.listen(0, '127.0.0.1');
