// A worker of the death suite: echoes frames, and kills itself with SIGKILL at a given step. A step is
// one access to shared memory that the peer can observe: each call of `Atomics`, before or after it.

import type { ByteReader, ByteWriter } from '../../src/channels/bytes.js';
import { acceptShm } from '../../src/channels/shm/index.js';

const [ticket = '', deadlyStep = '', side = ''] = process.argv.slice(2);
const { channel } = acceptShm(JSON.parse(ticket));
let step = 0;

function die(): void {
  process.kill(process.pid, 'SIGKILL');
  for (;;); // the signal comes
}

type Operation = (array: Int32Array, index: number, value: number, next: number) => number;

function countSteps(operation: Operation): Operation {
  return (array, index, value, next) => {
    step++;
    if (step === Number(deadlyStep) && side === 'before') die();
    const result = operation(array, index, value, next);
    if (step === Number(deadlyStep) && side === 'after') die();
    return result;
  };
}

Object.assign(Atomics, {
  store: countSteps(Atomics.store),
  load: countSteps(Atomics.load),
  exchange: countSteps(Atomics.exchange),
  compareExchange: countSteps(Atomics.compareExchange),
});

const writeBody = (writer: ByteWriter, bytes: Buffer): boolean => {
  // In the middle of a frame, whose bytes must never be read.
  writer.raw(bytes.subarray(0, 1));
  Atomics.load(new Int32Array(1), 0);
  writer.raw(bytes.subarray(1));
  return true;
};

channel.handle({
  onFrame: (kind, task, target, body: ByteReader) => {
    const bytes = body.copy(body.limit - body.position);
    channel.trySend(kind, task, target, writeBody, bytes);
  },
  onClose: () => {
    channel.close();
  },
});
channel.ref();
