// A server as a unit: every instance listens on the same port.
import { createServer } from 'node:http';
import type { UnitContext } from '../../../src/public.js';

export default ({ instance, loop, config }: UnitContext<{ port: number }>): Promise<void> => {
  const server = createServer((_request, response) => {
    response.end(`${instance} ${loop} ${process.pid}`);
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(config.port, '127.0.0.1', resolve);
  });
};
