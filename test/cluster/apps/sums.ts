// A unit that adds numbers and answers with its loop, and another unit that sends it requests.

import type { UnitContext, UnitObject } from '../../../src/public.js';

export default function start({ bus, loop }: UnitContext): UnitObject {
  let sum = 0;
  let last = 0;
  const who = (): string => `${process.pid} ${loop}`;
  bus.consumer<number>('add', ({ body }) => {
    sum += body;
  });
  bus.consumer('last', () => {
    last += 1;
  });
  bus.consumer('sum', (message) => message.reply([who(), sum, last]));
  bus.consumer('ask others', async (message) => {
    const answers = new Set<unknown>();
    for (let at = 0; at < Number(message.body); at += 1) {
      answers.add(String((await bus.request<[string, number]>('sum', 0)).body[0]));
    }
    message.reply([...answers]);
  });
  const micro = { name: 'sums', version: '1.0.0' };
  bus.service('sum service', { sum: () => sum }, { micro });
  return {
    save: () => sum,
    restore: (saved) => {
      sum = Number(saved);
    },
  };
}
