// A unit that ends its process soon after each start; not before the file of an environment variable is there.

import { existsSync } from 'node:fs';

const file = process.env['MANYCORE_TEST_GO'];

export function start(): void {
  setInterval(() => {
    if (file === undefined || existsSync(file)) process.exit(7);
  }, 50);
}
