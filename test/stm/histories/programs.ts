// Programs that record histories: two workers run transactions on shared objects beside each other, and note
// what each attempt saw. They run as users run them, or on a memory that lacks a part of the protocol.
// Not here: what a history must be (history.ts, queue-history.ts).

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { nativePath } from '../../../src/native.js';
import { programFolder, runNode } from '../../pool/programs.js';
import type { Run } from './history.js';

/** Programs that are run for what only two that meet can show. */
const tries = 20;

/** A program in pieces of text. A value of a variable is a version: how often it was set, and by whom. */
export interface Recording {
  /** Makes what the workers share; all other pieces see it. */
  readonly shared: string;
  /** Functions of a worker, outside of transactions. */
  readonly worker?: string;
  /** Chooses what the next transaction does. */
  readonly choose: string;
  /** One attempt; it writes to `run`. */
  readonly attempt: string;
  /** Behind the end of the workers: may add to `runs`. */
  readonly end?: string;
  readonly transactions: number;
}

function program(parts: Recording, mutant: Mutant): string {
  return `
  import { writeFileSync } from 'node:fs';
  import { Pool } from 'manycore';
  import { atomically, free, orElse, tlist, tmap, tqueue, tsortedMap, tvar } from 'manycore/stm';
  const workers = 2;
  const ids = 1_000_000;
  const now = () => Number(process.hrtime.bigint());
  const random = (count) => Math.floor(Math.random() * count);
  ${parts.shared}
  const begun = tvar(0);
  const work = (worker, transactions) => {
    ${mutant.worker ?? ''}
    atomically(() => begun.update((count) => count + 1));
    while (begun.peek() < workers); // so that they run beside each other
    const runs = [];
    let run;
    const versionOf = (variable, value) => ({ variable, count: Math.floor(value / ids), by: value % ids });
    const think = () => { for (let spin = Math.random() * 300; spin > 0; spin--) Math.sqrt(spin); };
    ${parts.worker ?? ''}
    for (let turn = 0; turn < transactions; turn++) {
      const id = 1 + worker + turn * workers;
      ${parts.choose}
      run = undefined;
      const leave = (how) => runs.push({ ...run, ...how, end: now() });
      try {
        atomically(() => {
          if (run !== undefined) leave({ isInVain: true });
          run = { id, worker, start: now(), reads: [], writes: [], again: [], steps: [] };
          ${parts.attempt}
        });
        leave();
      } catch (error) {
        if (error.code === undefined) throw error; // of this program
        leave({ isInVain: true, error: String(error) });
      }
    }
    return runs;
  };
  const pool = new Pool({ size: workers });
  const all = Array.from({ length: workers }, (_, worker) => pool.run(work, worker, ${parts.transactions}));
  const runs = (await Promise.all(all)).flat();
  await pool.close();
  ${parts.end ?? ''}
  writeFileSync('runs.json', JSON.stringify(runs));`;
}

/** A change of the memory, as text. */
interface Mutant {
  /** A module that each process imports before anything else. */
  readonly module?: string;
  /** Runs in each worker before its transactions. */
  readonly worker?: string;
}

const noMutant: Mutant = {};

/** Time for a mutant to end, in ms. */
const mutantMs = 60_000;

/** Runs the program. `undefined`: a mutant has not ended, as one that walks in a ring; it was killed. */
async function historyOf<R extends Run>(
  t: TestContext,
  recording: Recording,
  mutant = noMutant,
): Promise<R[] | undefined> {
  const { module = '' } = mutant;
  const folder = programFolder(t, {
    'main.mjs': program(recording, mutant),
    'mutant.mjs': module,
  });
  const flags = module === '' ? [] : ['--import', './mutant.mjs'];
  const limitMs = mutant === noMutant ? undefined : mutantMs;
  const { stderr, exitCode } = await runNode(folder, [...flags, 'main.mjs'], '', '', limitMs);
  if (exitCode === null && mutant !== noMutant) return undefined;
  assert.equal(exitCode, 0, stderr);
  const runs: R[] = JSON.parse(readFileSync(join(folder, 'runs.json'), 'utf8'));
  return runs;
}

/** Runs the program until two workers have met; no history may have a contradiction. */
export async function assertOrder<R extends Run>(
  t: TestContext,
  recording: Recording,
  contradictionIn: (runs: readonly R[]) => string | undefined,
): Promise<void> {
  let inVain = 0;
  for (let turn = 0; turn < tries && inVain === 0; turn += 1) {
    const runs = await historyOf<R>(t, recording);
    assert.ok(runs);
    assert.equal(contradictionIn(runs), undefined);
    inVain = runs.filter(({ isInVain }) => isInVain === true).length;
  }
  t.diagnostic(`${inVain} attempts in vain`);
  assert.ok(inVain > 0, 'the workers never met');
}

/** Runs the program on a memory that is not whole until a history shows that. */
export async function assertFound<R extends Run>(
  t: TestContext,
  recording: Recording,
  mutant: Mutant,
  contradictionIn: (runs: readonly R[]) => string | undefined,
): Promise<void> {
  let found: string | undefined;
  for (let turn = 0; turn < tries && found === undefined; turn += 1) {
    const runs = await historyOf<R>(t, recording, mutant);
    found = runs === undefined ? 'a transaction never ended' : contradictionIn(runs);
  }
  assert.ok(found, 'all histories have an order');
  t.diagnostic(found.slice(0, 200));
}

/** A mutant with other methods of the native part: words 1 and 2 of the desk count reads and writes. */
function withNative(methods: string): Mutant {
  const module = `
    import { createRequire } from 'node:module';
    const binding = createRequire(import.meta.url)(${JSON.stringify(nativePath())});
    const { NativeTransactions } = binding;
    binding.NativeTransactions = class extends NativeTransactions { ${methods} };`;
  return { module };
}

/** A mutant with other methods of `variable` or `attempt`, the prototypes of all variables and attempts. */
function withMethods(change: string): Mutant {
  const worker = `
    const [probe, passed] = [tvar(0), tlist()];
    const variable = Object.getPrototypeOf(probe);
    const { dropRead, get, set } = variable;
    let attempt;
    variable.dropRead = function (by, index) {
      attempt = Object.getPrototypeOf(by);
      dropRead.call(this, by, index);
    };
    passed.add(1);
    passed.has(2); // drops the read of a key, by an attempt
    variable.dropRead = dropRead;
    free(passed);
    free(probe);
    const { begin, dropRead: drop, read: readWords } = attempt;
    ${change}`;
  return { worker };
}

/** Mutants by what they lack. */
export const mutants = {
  'a commit without validation': withNative(`committer() {
    const [commit, desk] = [super.committer(), new Int32Array(this.desk())];
    return () => { desk[1] = 0; return commit(); };
  }`),
  'a longer snapshot without validation': withNative(`extend() {
    new Int32Array(this.desk())[1] = 0;
    return super.extend();
  }`),
  'a commit that loses a write': withNative(`committer() {
    const [commit, desk] = [super.committer(), new Int32Array(this.desk())];
    return () => { if (desk[2] > 1 && Math.random() < 0.01) desk[2] -= 1; return commit(); };
  }`),
  'a transaction that does not see its own writes': withMethods(`
    const before = new Map();
    attempt.begin = function () { before.clear(); begin.call(this); };
    variable.set = function (value) {
      if (!before.has(this)) before.set(this, get.call(this));
      set.call(this, value);
    };
    variable.get = function () { return before.has(this) ? before.get(this) : get.call(this); };`),
  'a search that also drops the read of where it ends': withMethods(`
    attempt.dropRead = function (index) { drop.call(this, index); drop.call(this, this.readCount - 1); };`),
  'an attempt that forgets a read': withMethods(`
    attempt.read = function (at, header) {
      readWords.call(this, at, header);
      if (Math.random() < 0.5) drop.call(this, this.readCount - 1);
    };`),
};
