// As hello.ts, but it closes its server itself when it ends.
import { createServer } from 'node:http';
import type { UnitContext } from '../../../src/public.js';

export default async ({ config }: UnitContext<{ port: number }>): Promise<() => Promise<void>> => {
  const server = createServer((_request, response) => response.end('here'));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(config.port, '127.0.0.1', resolve);
  });
  return () => new Promise((resolve) => server.close(() => resolve()));
};
