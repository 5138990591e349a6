// A unit that returns the cluster variables in the environment of its loop.

import type { UnitContext } from '../../../src/public.js';

export function start({ bus }: UnitContext): void {
  bus.consumer('names', (message) => {
    const names = Object.keys(process.env).filter((name) => name.startsWith('MANYCORE_CLUSTER'));
    message.reply(names);
  });
}
