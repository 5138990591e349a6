// Transactions of several processes, and of one and the same memory without a part of the protocol: a history must have
// an order, and those of the mutants must be found to have none.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { nativePath, requireNative } from '../../../src/native.js';
import { programFolder, runNode } from '../../pool/programs.js';
import { type Random, random } from '../../support/index.js';
import { contradictionIn, type Run, type Version } from './history.js';

requireNative(); // without it there is nothing to run

/** Programs that are run for what only two that meet can show. */
const tries = 20;

/** The same question by trying all orders. */
function hasOrder(runs: readonly Run[]): boolean {
  const search = (left: readonly Run[], now: ReadonlyMap<number, Version>): boolean => {
    if (left.length === 0) return true;
    return left.some((run) => {
      if (left.some((other) => other.end < run.start)) return false;
      const isSo = ({ variable, count, by }: Version): boolean => {
        const present = now.get(variable);
        return (present?.count ?? 0) === count && (present?.by ?? 0) === by;
      };
      const isNext = ({ variable, count }: Version): boolean =>
        (now.get(variable)?.count ?? 0) + 1 === count;
      if (!run.reads.every(isSo) || !run.writes.every(isNext)) return false;
      const then = new Map(now);
      for (const version of run.writes) then.set(version.variable, version);
      return search(
        left.filter((other) => other !== run),
        then,
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
    for (const [variable, versions] of all.entries()) {
      if (integer(0, 3) === 0) continue;
      const present = versions.at(-1) ?? { variable, count: 0, by: 0 };
      reads.push(integer(0, 6) === 0 ? pick([present, ...versions]) : present);
      if (integer(0, 2) === 0) writes.push({ variable, count: present.count + 1, by: id });
    }
    for (const version of writes) all[version.variable]?.push(version);
    const start = integer(0, 5) === 0 ? integer(0, 60) : 10 * at - integer(0, 15);
    return { id, start, end: start + integer(1, 20), reads, writes };
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

/** The shared object of the transactions: how it is made, read and set, by the number of a variable. */
const registers: Readonly<Record<string, readonly [make: string, get: string, set: string]>> = {
  variables: [
    'Array.from({ length: variables }, () => tvar(0))',
    'shared[at].get()',
    'shared[at].set(value)',
  ],
  'a map': ['tmap()', 'shared.get(at) ?? 0', 'shared.set(at, value)'],
  'a sorted map': ['tsortedMap()', 'shared.get(at) ?? 0', 'shared.set(at, value)'],
  'large values of a map': [
    'tmap()',
    'Number((shared.get(at) ?? "0").slice(-17))',
    'shared.set(at, String(value).padStart(300))',
  ],
};

// A value is a version: how often its variable was set, and by which transaction.
const program = ([make, get, set]: readonly [string, string, string]): string => `
  import { writeFileSync } from 'node:fs';
  import { Pool } from 'manycore';
  import { atomically, tmap, tsortedMap, tvar } from 'manycore/stm';
  const variables = 6;
  const workers = 2;
  const shared = ${make};
  const ids = 1_000_000;
  const begun = tvar(0);
  const work = (worker, transactions) => {
    atomically(() => begun.update((count) => count + 1));
    while (begun.peek() < workers); // so that they run beside each other
    const now = () => Number(process.hrtime.bigint());
    const runs = [];
    const read = (at) => {
      const value = ${get};
      return { variable: at, count: Math.floor(value / ids), by: value % ids };
    };
    for (let turn = 0; turn < transactions; turn++) {
      const id = 1 + worker + turn * workers;
      const order = Array.from({ length: variables }, (_, at) => at).sort(() => Math.random() - 0.5);
      const used = order.slice(0, 1 + Math.floor(Math.random() * variables));
      const writes = new Set(used.filter(() => Math.random() < 0.4));
      let run;
      atomically(() => {
        if (run !== undefined) runs.push({ ...run, end: now(), writes: [] });
        run = { id, start: now(), reads: [], writes: [] };
        for (const at of used) {
          run.reads.push(read(at));
          for (let spin = Math.random() * 300; spin > 0; spin--) Math.sqrt(spin);
        }
        for (const { variable: at, count } of run.reads) {
          if (!writes.has(at)) continue;
          const value = (count + 1) * ids + id;
          ${set};
          run.writes.push({ variable: at, count: count + 1, by: id });
        }
      });
      runs.push({ ...run, end: now() });
    }
    return runs;
  };
  const pool = new Pool({ size: workers });
  const parts = await Promise.all(Array.from({ length: workers }, (_, at) => pool.run(work, at, 3000)));
  await pool.close();
  writeFileSync('runs.json', JSON.stringify(parts.flat()));`;

async function historyOf(t: TestContext, text: string, mutant = ''): Promise<Run[]> {
  const folder = programFolder(t, { 'main.mjs': text, 'mutant.mjs': mutant });
  const flags = mutant === '' ? [] : ['--import', './mutant.mjs'];
  const { stderr, exitCode } = await runNode(folder, [...flags, 'main.mjs']);
  assert.equal(exitCode, 0, stderr);
  const runs: Run[] = JSON.parse(readFileSync(join(folder, 'runs.json'), 'utf8'));
  return runs;
}

for (const [what, parts] of Object.entries(registers)) {
  test(`transactions on ${what} have an order, and attempts in vain fit into it`, async (t) => {
    let inVain = 0;
    for (let turn = 0; turn < tries && inVain === 0; turn += 1) {
      const runs = await historyOf(t, program(parts));
      assert.equal(contradictionIn(runs), undefined);
      inVain = runs.length - 6000;
    }
    t.diagnostic(`${inVain} attempts in vain`);
    assert.ok(inVain > 0, 'the workers never met');
  });
}

/** Changes of the native part of the memory, before anything uses it: words 1 and 2 of the desk count reads and writes. */
const mutants: Readonly<Record<string, string>> = {
  'a commit without validation': `committer() {
    const [commit, desk] = [super.committer(), new Int32Array(this.desk())];
    return () => { desk[1] = 0; return commit(); };
  }`,
  'a longer snapshot without validation': `extend() {
    new Int32Array(this.desk())[1] = 0;
    return super.extend();
  }`,
  'a commit that loses a write': `committer() {
    const [commit, desk] = [super.committer(), new Int32Array(this.desk())];
    return () => { if (desk[2] > 1 && Math.random() < 0.01) desk[2] -= 1; return commit(); };
  }`,
};

for (const [what, change] of Object.entries(mutants)) {
  test(`${what} is found`, async (t) => {
    const mutant = `
      import { createRequire } from 'node:module';
      const binding = createRequire(import.meta.url)(${JSON.stringify(nativePath())});
      const { NativeTransactions } = binding;
      binding.NativeTransactions = class extends NativeTransactions { ${change} };`;
    let found: string | undefined;
    for (let turn = 0; turn < tries && found === undefined; turn += 1) {
      found = contradictionIn(
        await historyOf(t, program(registers['variables'] ?? ['', '', '']), mutant),
      );
    }
    assert.ok(found, 'all histories have an order');
    t.diagnostic(found.slice(0, 200));
  });
}
