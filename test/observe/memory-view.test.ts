// Views and metrics of transactional memory, which several threads of a program report.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ThreadStats } from '../../src/agent/index.js';
import { memoriesOf } from '../../src/observe/metrics/sources.js';
import { type Poll, viewOf } from '../../src/observe/views/view.js';
import { threadWithMemory } from './memory-thread.js';

function counts(commits: number, space = 7) {
  const others = { conflicts: 1, thefts: 2, recoveries: 1, sleeps: 0 };
  return { space, threads: 3, memoryBytes: 65_536, commits, ...others };
}

function poll(atMs: number, threads: ThreadStats[]): Poll {
  const program = { pid: 10, title: '/app/main.js', servers: [], threads, silent: [] };
  return { atMs, programs: [program], usage: new Map(), trees: new Map() };
}

test('a transactional memory has rates of its counts', () => {
  const now = poll(1000, [threadWithMemory(6000, 0, counts(30))]);
  const [view] = viewOf(now, poll(0, [threadWithMemory(5000, 0, counts(10))]));
  const [memory] = view?.memories ?? [];
  assert.equal(memory?.commitsPerSecond, 20);
  assert.equal(memory?.conflictsPerSecond, 0);
  assert.equal(memory?.memoryBytes, 65_536);
  assert.equal(memory?.recoveries, 1);
});

test('a memory that several loops report is one', () => {
  const threads = [
    threadWithMemory(1, 0, counts(5)),
    threadWithMemory(1, 2, counts(6)),
    threadWithMemory(1, 3, counts(1, 8)),
  ];
  const [view] = viewOf(poll(0, threads), undefined);
  assert.deepEqual(
    view?.memories.map(({ thread: number }) => number),
    [0, 3],
  );
  assert.deepEqual(
    memoriesOf(threads).map(({ stats }) => stats.commits),
    [5, 1],
  );
});
