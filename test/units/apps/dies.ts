// A unit whose thread dies once the file is there that it is given.
import { existsSync } from 'node:fs';
import type { UnitContext } from '../../../src/public.js';

export function start({ config }: UnitContext<string>): void {
  setInterval(() => {
    if (existsSync(config)) throw new Error('it was told to');
  }, 10);
}
