// The ways in which a pool can work: each worker with each channel that reaches it. What callers see is
// the same for all, so tests of behaviour run once for each.

import type { TestContext } from 'node:test';
import { Pool, type PoolOptions } from '../../../src/public.js';
import { isFew } from '../../support/index.js';

export interface Way {
  readonly name: string;
  readonly worker: 'process' | 'thread';
  readonly channel: 'shm' | 'socket' | 'memory';
}

const allWays: readonly Way[] = [
  { name: 'process over shm', worker: 'process', channel: 'shm' },
  { name: 'process over socket', worker: 'process', channel: 'socket' },
  { name: 'thread over shm', worker: 'thread', channel: 'shm' },
  { name: 'thread over memory', worker: 'thread', channel: 'memory' },
];

/** In a short run one way of each kind of worker is enough. */
const fewWays = new Set(['process over shm', 'thread over memory']);

export const ways = allWays.filter(({ name }) => !isFew || fewWays.has(name));

export const processWays = ways.filter(({ worker }) => worker === 'process');

/** Opens a pool that is closed when the test is over. */
export function openPool(t: TestContext, options: PoolOptions, way?: Way): Pool {
  const pool = new Pool({ ...options, ...(way && { worker: way.worker, channel: way.channel }) });
  t.after(() => pool.destroy());
  return pool;
}

/** Deadline of a wait in a test, in ms. */
export const deadlineMs = 60_000;

/** A gate that tasks pass when it is open: for tasks of any worker, because it is a file. */
export { Gate } from '../tasks/gate.js';
