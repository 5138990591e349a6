// A server as a unit: `manycore run server.js --instances 4` listens on one port. Each instance gets its
// share of the connections on its own event loop.
import { once } from 'node:events';
import { createServer } from 'node:http';

export default class HelloServer {
  #server;
  #requests = 0;

  async start({ instance, config = { port: 8080 } }) {
    this.#server = createServer((_request, response) => {
      this.#requests += 1;
      response.end(`hello from instance ${instance}, process ${process.pid}\n`);
    });
    this.#server.listen(config.port);
    await once(this.#server, 'listening');
  }

  health() {
    return `${this.#requests} requests`;
  }
}
