// A unit that computes for as long as it is asked to.
import type { UnitContext } from '../../../src/public.js';

export function start({ bus }: UnitContext): void {
  bus.consumer<number>('sleep', ({ body }) => {
    const endMs = performance.now() + body;
    while (performance.now() < endMs);
  });
  bus.consumer('slept', (message) => message.reply('yes'));
}
