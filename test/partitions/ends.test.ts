// Ends of partitions by limits and by loops: the end has its cause, the program goes on, and nothing of the partition is
// left. Not here: frames that no honest worker sends (frames.test.ts), the counters of limits (limits.test.ts).

import fs from 'node:fs';
import { type End, silence, testEnds } from './hostile.js';

const ends: readonly End[] = [
  {
    name: 'memory',
    run: () => {
      const all: Buffer[] = [];
      for (;;) all.push(Buffer.alloc(2 ** 20, 1));
    },
    seen: /memory limit of (128|96) MiB/,
    limits: { memoryMb: 128 },
  },
  {
    // V8 finds this out before the kernel: its heap has a part of the memory.
    name: 'a heap of objects',
    run: () => {
      const all: object[] = [];
      for (;;) all.push(new Array(1000).fill({}));
    },
    seen: /WORKER_EXITED.* memory limit of (512|96) MiB \(memoryMb\)/,
    limits: { memoryMb: 512 },
  },
  {
    name: 'files in /tmp count as memory',
    run: () => {
      for (let at = 0; ; at += 1) fs.writeFileSync(`/tmp/${at}`, Buffer.alloc(2 ** 22));
    },
    seen: /memory limit of (128|96) MiB/,
    limits: { memoryMb: 128, fileMb: 1000 },
  },
  {
    name: 'output',
    run: () => {
      for (;;) {
        try {
          fs.writeSync(2, Buffer.alloc(2 ** 16, 97));
        } catch {} // the pipe is full
      }
    },
    seen: /more than 1 MiB of output/,
    limits: { outputMb: 1 },
  },
  {
    name: 'a result above resultMb',
    run: () => Buffer.alloc(3 * 2 ** 20),
    seen: /is too large/,
    limits: { resultMb: 2 },
  },
  {
    name: 'a result of 1 GiB',
    run: () => Buffer.alloc(2 ** 30),
    seen: /is too large|memory limit|allocation failed/,
    limits: { resultMb: 2 },
  },
  {
    name: 'an uncaught error whose message is no text',
    run: () => {
      setImmediate(() => {
        throw Object.assign(new Error('x'), { message: Object.create(null) });
      });
      return silence();
    },
    seen: /has no text/,
  },
  {
    name: 'an endless loop',
    run: () => {
      for (;;);
    },
    seen: /TASK_TIMED_OUT/,
    timeoutMs: 200,
  },
  {
    name: 'an endless loop that ignores signals',
    run: () => {
      process.on('SIGTERM', () => {});
      process.on('SIGINT', () => {});
      for (;;);
    },
    seen: /TASK_TIMED_OUT/,
    timeoutMs: 200,
  },
];
// In guests those that vm.test.ts does not have.
testEnds(ends, { memoryMb: 96, fileMb: 1000, outputMb: 1, resultMb: 2 }, [
  'a heap of objects',
  'files in /tmp count as memory',
  'output',
  'a result above resultMb',
  'a result of 1 GiB',
  'an endless loop that ignores signals',
]);
