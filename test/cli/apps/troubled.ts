// A program with a pool, which gets into trouble on command: its loop stands still, or is late, or
// memory is near a limit, of buffers or of the heap of a thread, or libuv's pool has too much to do, or workers fight over
// a variable.

import { pbkdf2 } from 'node:crypto';
import { getHeapStatistics } from 'node:v8';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { Pool } from '../../../src/public.js';
import { atomically, named, tvar } from '../../../src/stm/public.js';

const kept: unknown[] = [];

const troubles: Readonly<Record<string, () => void>> = {
  blocked: () => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0),
  late: () => void setInterval(compute, 10),
  buffers: () => void kept.push(Buffer.alloc(400 * 2 ** 20, 1)),
  jobs: () => {
    for (let at = 0; at < 9; at += 1) pbkdf2('a', 'b', 2 ** 31 - 1, 64, 'sha512', () => {});
  },
  heap: fillHeap,
  fought: fight,
};

/**
 * 154 of 200 MiB, also once garbage is collected: the advice begins at 75 %. From 80 % on V8 ends a thread
 * with long collections, as on a loaded machine.
 */
function fillHeap(): void {
  const mebibyte = new Array(131_072).fill(1.5);
  const fill = () => {
    while (getHeapStatistics().used_heap_size < 154 * 2 ** 20) kept.push(mebibyte.slice());
  };
  fill();
  setInterval(fill, 100);
}

function compute(): void {
  const end = performance.now() + 250;
  while (performance.now() < end);
}

/** Two threads in turns: in each attempt of the first one the second one commits, on any number of cores. */
function fight(): void {
  const hits = named('hits', () => tvar(0));
  const turn = new Int32Array(new SharedArrayBuffer(4));
  const fighters = new Pool({ size: 2, worker: 'thread' });
  const lose = (): never => {
    for (;;) {
      let isFirst = true;
      atomically(() => {
        const seen = hits.get();
        if (isFirst) {
          isFirst = false;
          Atomics.store(turn, 0, 1);
          Atomics.notify(turn, 0);
          Atomics.wait(turn, 0, 1);
        }
        hits.set(seen + 1);
      });
    }
  };
  const win = (): never => {
    for (;;) {
      Atomics.wait(turn, 0, 0);
      atomically(() => hits.update((count) => count + 1));
      Atomics.store(turn, 0, 0);
      Atomics.notify(turn, 0);
    }
  };
  void fighters.run(lose);
  void fighters.run(win);
}

const pool = new Pool({ size: 1, worker: 'thread' });
await pool.run(() => 1);
if (isMainThread) process.on('message', ([trouble, where]) => begin(trouble, where));
else {
  begin(workerData, 'main');
  setInterval(() => {}, 1000);
}

function begin(trouble: string, where: string): void {
  if (where === 'main') troubles[trouble]?.();
  else {
    const resourceLimits = { maxOldGenerationSizeMb: 200 };
    new Worker(new URL(import.meta.url), { workerData: trouble, resourceLimits });
  }
}
