// A worker for tests: sends each frame back as it came, closes when the parent closes.

import type { ByteReader, ByteWriter } from '../../src/channels/bytes.js';
import { acceptShm } from '../../src/channels/shm/index.js';
import type { ChannelTicket } from '../../src/channels/types.js';

const ticket: ChannelTicket = JSON.parse(process.argv[2] ?? '');
const { channel } = acceptShm(ticket);

const copy = (writer: ByteWriter, body: ByteReader): boolean => {
  writer.raw(body.bytes.subarray(body.position, body.limit));
  return true;
};
const waiting: { kind: number; task: number; target: number; body: Buffer }[] = [];
const raw = (writer: ByteWriter, body: Buffer): boolean => {
  writer.raw(body);
  return true;
};

channel.handle({
  onFrame: (kind, task, target, body) => {
    if (waiting.length === 0 && channel.trySend(kind, task, target, copy, body) === 'sent') return;
    waiting.push({ kind, task, target, body: body.copy(body.limit - body.position) });
  },
  onDrain: () => {
    for (;;) {
      const next = waiting[0];
      if (next === undefined) return;
      if (channel.trySend(next.kind, next.task, next.target, raw, next.body) !== 'sent') return;
      waiting.shift();
    }
  },
  onClose: () => {
    channel.unref();
    channel.close();
  },
});
channel.ref();
