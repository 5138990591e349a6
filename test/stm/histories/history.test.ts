// The judge of histories, on small ones.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Random, random } from '../../support/index.js';
import { contradictionIn, type Run, type Version } from './history.js';

/** The same question by trying all orders. */
function hasOrder(runs: readonly Run[]): boolean {
  const search = (left: readonly Run[], now: ReadonlyMap<unknown, Version>): boolean => {
    if (left.length === 0) return true;
    return left.some((run) => {
      if (left.some((other) => other.end < run.start)) return false;
      const isIn = (state: ReadonlyMap<unknown, Version>) => (version: Version) => {
        const present = state.get(version.variable);
        return (present?.count ?? 0) === version.count && (present?.by ?? 0) === version.by;
      };
      const isNext = ({ variable, count }: Version): boolean =>
        (now.get(variable)?.count ?? 0) + 1 === count;
      if (!run.reads.every(isIn(now))) return false;
      const then = new Map(now);
      for (const version of run.writes) then.set(version.variable, version);
      if (run.again?.every(isIn(then)) === false) return false;
      if (run.isInVain !== true && !run.writes.every(isNext)) return false;
      return search(
        left.filter((other) => other !== run),
        run.isInVain === true ? now : then,
      );
    });
  };
  return search(runs, new Map());
}

/** A small history: of one order, with a read or a time that may not fit it. */
function smallHistory({ integer, pick }: Random): Run[] {
  const all: Version[][] = [[], []];
  const runs = Array.from({ length: integer(2, 6) }, (_, at): Run => {
    const id = at + 1;
    const reads: Version[] = [];
    const writes: Version[] = [];
    const again: Version[] = [];
    const isInVain = integer(0, 5) === 0;
    for (const [variable, versions] of all.entries()) {
      if (integer(0, 3) === 0) continue;
      const present = versions.at(-1) ?? { variable, count: 0, by: 0 };
      const read = integer(0, 6) === 0 ? pick([present, ...versions]) : present;
      const write = { variable, count: present.count + 1, by: id };
      reads.push(read);
      const isSet = integer(0, 2) === 0;
      if (isSet) writes.push(write);
      if (integer(0, 2) === 0) again.push(integer(0, 20) > 0 && isSet ? write : read);
    }
    if (!isInVain) for (const version of writes) all[Number(version.variable)]?.push(version);
    const start = integer(0, 5) === 0 ? integer(0, 60) : 10 * at - integer(0, 15);
    return { id, start, end: start + integer(1, 20), reads, writes, again, isInVain };
  });
  return runs;
}

test('the graph finds what a search through all orders finds', (t) => {
  const seeded = random(t);
  const count = { good: 0, bad: 0 };
  for (let round = 0; round < 5000; round += 1) {
    const runs = smallHistory(seeded);
    const found = contradictionIn(runs);
    assert.equal(found === undefined, hasOrder(runs), `${found}\n${JSON.stringify(runs)}`);
    count[found === undefined ? 'good' : 'bad'] += 1;
  }
  t.diagnostic(JSON.stringify(count));
  assert.ok(count.good > 500 && count.bad > 500, JSON.stringify(count));
});
