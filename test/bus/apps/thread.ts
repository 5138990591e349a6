// A thread with a bus, whose peer is the bus of who started it.

import { workerData } from 'node:worker_threads';
import { EventBus } from '../../../src/bus/index.js';
import { BusLink } from '../../../src/bus/link.js';
import { acceptChannel } from '../../../src/channels/index.js';

const bus = new EventBus({ copy: structuredClone });
const link = new BusLink(bus, acceptChannel(workerData));
link.ref();
void link.closed.then(() => process.exit());

let counted: unknown[] = [];

bus.consumer<number>('double', async (message) => {
  const thanks = await message.replyAndRequest(2 * message.body);
  thanks.reply(`${thanks.body}!`);
});
bus.consumer('echo', (message) => message.reply(message.body, { headers: message.headers }));
bus.consumer<(n: number) => number>('apply', (message) => message.reply(message.body(20)));
bus.consumer('fail', (message) => message.fail(404, 'no such thing'));
bus.consumer('throw', () => {
  throw new TypeError('out of order');
});
bus.consumer('never', () => {});
bus.consumer('weak', (message) => {
  try {
    message.reply(new WeakMap());
  } catch (error) {
    message.reply(String(Object(error).code));
  }
});
bus.consumer('count', ({ body }) => void counted.push(body));
bus.consumer('counted', (message) => {
  message.reply(counted);
  counted = [];
});
bus.consumer('ask back', async (message) => {
  const answer = await bus.request('caller', message.body);
  message.reply(answer.body);
});
bus.consumer<number>('sleep', ({ body }) => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, body);
});
bus.consumer('exit', () => process.exit());
