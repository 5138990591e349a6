// hello.js as a unit: each instance has a server of its own, and all listen on one port.
import { once } from 'node:events';
import { createServer } from 'node:http';

const body = 'hello world';
const headers = { 'content-type': 'text/plain', 'content-length': String(body.length) };

export default async function hello() {
  const server = createServer((_request, response) => {
    response.writeHead(200, headers);
    response.end(body);
  });
  server.listen(Number(process.env.PORT), '127.0.0.1');
  await once(server, 'listening');
}
