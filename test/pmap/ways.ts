// The ways in which a map can go: each worker with each channel, and in the caller's own process. What
// callers see is the same for all, so tests of behaviour run once for each. Tests that do no harm
// share one pool of two workers a way and file; those that end workers or count what a pool did open
// their own.

import { after } from 'node:test';
import { type MapChannel, Pool } from '../../src/public.js';
import { type Way, ways } from '../pool/calls/ways.js';

export interface MapWay {
  readonly name: string;
  /** `undefined`: inline. */
  readonly way: Way | undefined;
}

/** The ways with workers. */
export const workerWays = ways.map((way) => ({ name: way.name, way }));
export const mapWays: readonly MapWay[] = [...workerWays, { name: 'inline', way: undefined }];

const pools = new Map<string, Pool>();

after(async () => {
  await Promise.all([...pools.values()].map((pool) => pool.destroy()));
});

/** The pool of two workers that the tests of a file share. */
export function sharedPool(way: Way): Pool {
  let pool = pools.get(way.name);
  if (pool === undefined) {
    pool = new Pool({ size: 2, worker: way.worker, channel: way.channel });
    pools.set(way.name, pool);
  }
  return pool;
}

/** Options of a map that goes this way. */
export function via({ way }: MapWay): { readonly pool?: Pool; readonly channel?: MapChannel } {
  return way === undefined ? { channel: 'inline' } : { pool: sharedPool(way) };
}

/** `0, 1, …`, so many. */
export function count(items: number): number[] {
  return Array.from({ length: items }, (_, index) => index);
}

/** Resolves when the event loop has turned so often. */
export async function turns(rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round += 1) await new Promise((turn) => setImmediate(turn));
}
