// A unit that blocks its loop once it has started, for eight seconds, and sends a message afterwards.
import { setTimeout as wait } from 'node:timers/promises';
import type { UnitContext } from '../../../src/public.js';

export function start({ bus }: UnitContext): void {
  void wait(100).then(nap);
  bus.consumer('napped', (message) => message.reply('yes'));
}

function nap(): void {
  const endMs = performance.now() + 8000;
  while (performance.now() < endMs);
}
