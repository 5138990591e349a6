// The words of the transactional memory in the hands of a test: the clock is set forward, as the commits of hours or
// days would set it, and another participant of this thread commits in the middle of a transaction.
// Not here: programs of their own, whose memory a test spoils (programs.ts).

import assert from 'node:assert/strict';
import { requireNative } from '../../src/native.js';
import type { TVar } from '../../src/stm/public.js';
import { nameOfVariable, threadState } from '../../src/stm/tvar.js';

/** Difference of the versions of two commits that follow each other. */
export const versionsPerCommit = 2;

/** The version of the last commit, as an unsigned number. */
export function clock(): number {
  const { words, at } = threadState().space;
  return Atomics.load(words, at.clock) >>> 0;
}

/** Sets the clock to what it is after so many commits that no variable here sees; between transactions. */
export function passCommits(commits: number): void {
  const { words, at } = threadState().space;
  Atomics.add(words, at.clock, (commits * versionsPerCommit) | 0);
}

/** Sets the clock forward to this version, modulo 2³². */
export function passUntil(version: number): void {
  passCommits(((version - clock()) >>> 0) / versionsPerCommit);
}

/** The lock word of a variable: its version, or an odd number while it is held. */
export function lockOf(variable: TVar<unknown>): number {
  return Atomics.load(threadState().space.words, nameOfVariable(variable).at);
}

/** Another participant, which commits while a transaction of this thread runs. */
export class Other {
  readonly #native = new (requireNative().NativeTransactions)(1, 2 ** 26, 1000, () => {});
  readonly #desk = new Int32Array(this.#native.desk());
  readonly #commit = this.#native.committer();

  /** Sets variables to integers, in one commit. */
  set(...changes: readonly (readonly [variable: TVar<unknown>, value: number])[]): void {
    const { words, at } = threadState().space;
    const [, ownEpoch = 0] = this.#native.places();
    const kindInt32 = 5;
    words[ownEpoch] = words[at.epoch] ?? 0;
    const writes = changes.flatMap(([variable, value]) => {
      const { at: place, header } = nameOfVariable(variable);
      return [place, header, kindInt32, value, 0, 0];
    });
    this.#desk.set([clock(), 0, changes.length]);
    this.#desk.set(writes, at.deskWrites);
    assert.equal(this.#commit(), 1);
    words[ownEpoch] = 0;
  }

  close(): void {
    this.#native.close();
  }
}
