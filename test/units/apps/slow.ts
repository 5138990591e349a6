// A unit that needs a second for each answer, over HTTP and over the bus, and announces on the bus when it
// begins.
import { createServer } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { UnitContext } from '../../../src/public.js';

export default ({ bus, config }: UnitContext<{ port: number } | undefined>): Promise<void> => {
  let begun = 0;
  bus.consumer('slow', async (message) => {
    begun += 1;
    await wait(1000);
    message.reply('at last');
  });
  bus.consumer('begun', (message) => message.reply(begun));
  if (config === undefined) return Promise.resolve();
  const server = createServer(async (_request, response) => {
    begun += 1;
    response.write('so '); // the client sees that it has begun
    await wait(1000);
    response.end('far');
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(config.port, '127.0.0.1', resolve);
  });
};
