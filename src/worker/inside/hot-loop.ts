// The loop over the items of a chunk, compiled anew for every mapper. V8 keeps its type feedback with the
// code of the call: a loop shared by all mappers sees them all and inlines none. Not compiled by
// `Function`, which a process may forbid, and whose cache would give all mappers one loop again.

import { compileFunction } from 'node:vm';
import type { Cells } from '../protocol.js';
import type { Mapper } from './chunk.js';

/** State of one chunk in the loop. */
export interface HotJob {
  readonly items: Cells;
  /** Item `at` is `items[offset + at]`, and has the index `start + at`. */
  readonly offset: number;
  readonly start: number;
  /** Result `at` goes to `into[intoOffset + at]`. */
  readonly into: Cells;
  readonly intoOffset: number;
  /** Set when the loop throws: index of the failed item. */
  stoppedAt: number;
  /** The promise that the mapper returned for that item. */
  pending: PromiseLike<unknown> | undefined;
}

/** Maps items `[from, to)`; returns the index it reached: less than `to` when it stopped for a promise. */
export type HotLoop = (job: HotJob, from: number, to: number) => number;

const source = `
  return (job, from, to) => {
    const { items, offset, start, into, intoOffset } = job;
    let at = from;
    try {
      for (; at < to; at += 1) {
        const result = mapper(items[offset + at], start + at);
        if (typeof result === 'object' && result !== null && typeof result.then === 'function') {
          job.pending = result;
          return at;
        }
        into[intoOffset + at] = result;
      }
    } catch (error) {
      job.stoppedAt = at;
      throw error;
    }
    return at;
  };`;

const loops = new WeakMap<Mapper, HotLoop>();
let madeLoops = 0;

/** Returns the loop of this mapper. */
export function hotLoopOf(mapper: Mapper): HotLoop {
  const known = loops.get(mapper);
  if (known !== undefined) return known;
  madeLoops += 1;
  const make = compileFunction(`${source} // ${madeLoops}`, ['mapper'], {
    filename: import.meta.url, // marks the frames in stacks as ours
  });
  const loop: HotLoop = make(mapper);
  loops.set(mapper, loop);
  return loop;
}
