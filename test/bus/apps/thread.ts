// A thread with a bus, whose peer is the bus of the thread that started it.

import { workerData } from 'node:worker_threads';
import { EventBus } from '../../../src/bus/index.js';
import { BusLink } from '../../../src/bus/transports/link.js';
import { acceptChannel } from '../../../src/channels/index.js';
import { shared } from '../../../src/public.js';

/** `gate`: the thread goes on when it is 1. */
const { ticket, gate } = workerData;
const bus = new EventBus({ copy: structuredClone });
const link = new BusLink(bus, acceptChannel(ticket));
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
bus.consumer('sleep', () => void Atomics.wait(gate, 0, 0));
bus.consumer('exit', () => process.exit());

/** Finds the bytes anywhere in the body. */
function bytesIn(body: unknown): Uint8Array {
  const found = body instanceof Map ? body.get('bytes') : body;
  if (found instanceof Uint8Array) return found;
  throw new TypeError('no bytes came');
}

bus.consumer('fill', ({ body }) => void bytesIn(body).fill(7));
bus.consumer('own', (message) => {
  const own = shared(100_000).fill(9);
  message.reply(message.body === 'nested' ? new Map([['bytes', own]]) : own);
});
bus.consumer('size', (message) => message.reply(bytesIn(message.body).byteLength));
bus.consumer<number>('large', (message) => message.reply(new Uint8Array(message.body).fill(1)));
