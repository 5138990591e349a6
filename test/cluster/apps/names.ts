// A unit that answers which variables about the cluster its loop has in its environment.

import type { UnitContext } from '../../../src/public.js';

export function start({ bus }: UnitContext): void {
  bus.consumer('names', (message) => {
    const names = Object.keys(process.env).filter((name) => name.startsWith('MANYCORE_CLUSTER'));
    message.reply(names);
  });
}
