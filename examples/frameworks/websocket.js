// `manycore serve examples/frameworks/websocket.js`: a server of WebSockets, by the package ws. A
// connection belongs to one loop for as long as it lasts.
import { createServer } from 'node:http';
import { WebSocketServer } from 'ws';

const server = createServer((_request, response) => {
  response.end(`hello from ws, process ${process.pid}`);
});
const sockets = new WebSocketServer({ server });
sockets.on('connection', (socket) => {
  socket.on('message', (message) => socket.send(`echo ${message}`));
});

server.listen(Number(process.env.PORT ?? 3000));
