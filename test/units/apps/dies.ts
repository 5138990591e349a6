// A unit whose thread dies once the file of its configuration exists.
import { existsSync } from 'node:fs';
import type { UnitContext } from '../../../src/public.js';

export function start({ config }: UnitContext<string>): void {
  setInterval(() => {
    if (existsSync(config)) throw new Error('it was asked to');
  }, 10);
}
