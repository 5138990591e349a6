// The measured unit: a hello-world server.
import { once } from 'node:events';
import { createServer } from 'node:http';

export async function start({ config }) {
  const server = createServer((_request, response) => response.end('Hello World!'));
  server.listen(config.port, '127.0.0.1');
  await once(server, 'listening'); // it is closed when the instance ends
}
