// A counter that all programs share: an integer, changed by comparing its revision.

import { CodedError } from '../errors.js';
import { nowMs, refuseInTransaction, setTimeout } from '../lib/index.js';
import { timedOut } from './errors.js';
import { checkInteger } from './options.js';
import { absent, type Store } from './store.js';

/**
 * An integer that all who use its name share; `0` at first. All methods reject with `SHARED_DATA_TIMED_OUT`,
 * `OPTION_INVALID`, and with the errors of the memory (`STM_…`, `NATIVE_MISSING`) or of the cluster
 * (`CLUSTER_…`).
 */
export interface SharedCounter {
  readonly name: string;
  get(): Promise<number>;
  /**
   * Adds `change`, which may be negative, and resolves with the sum. Rejects with `OPTION_INVALID` for a sum
   * that is no safe integer.
   */
  add(change?: number): Promise<number>;
  /** Sets `value` if the counter has `expected`, else resolves with false. */
  compareAndSet(expected: number, value: number): Promise<boolean>;
}

/** Longest pause after a change of another in between, in ms: longer than a round trip to a near server. */
const maxPauseMs = 8;

export class StoredCounter implements SharedCounter {
  readonly name: string;
  readonly #store: Store;

  constructor(name: string, store: Store) {
    this.name = name;
    this.#store = store;
  }

  async get(): Promise<number> {
    return (await this.#read()).value;
  }

  async add(change = 1): Promise<number> {
    checkInteger('the change', change);
    let sum = 0;
    await this.#change('add', (value) => {
      sum = checkInteger('the sum', value + change);
      return sum;
    });
    return sum;
  }

  async compareAndSet(expected: number, value: number): Promise<boolean> {
    checkInteger('the expected value', expected);
    checkInteger('the value', value);
    return await this.#change('compareAndSet', (now) => (now === expected ? value : undefined));
  }

  /** Sets what `next` makes of the value; `undefined`: sets nothing, and resolves with false. */
  async #change(call: string, next: (value: number) => number | undefined): Promise<boolean> {
    const { timeoutMs } = this.#store;
    const startedAt = nowMs();
    for (;;) {
      const { value, revision } = await this.#read();
      const changed = next(value);
      if (changed === undefined) return false;
      const bytes = Buffer.from(String(changed));
      if ((await this.#store.putIf(this.name, bytes, revision)) !== undefined) return true;
      if (nowMs() - startedAt > timeoutMs) {
        const hint = 'others change it all the time: raise timeoutMs, or count in parts';
        throw timedOut(`${call}() of the counter "${this.name}"`, timeoutMs, hint);
      }
      await new Promise((resolve) => setTimeout(resolve, Math.random() * maxPauseMs));
    }
  }

  async #read(): Promise<{ readonly value: number; readonly revision: number }> {
    refuseInTransaction(`a call of the counter "${this.name}"`);
    const entry = await this.#store.get(this.name);
    if (entry === undefined) return { value: 0, revision: absent };
    const text = Buffer.from(entry.bytes).toString();
    const value = Number(text);
    if (Number.isSafeInteger(value) && text !== '') return { value, revision: entry.revision };
    const message = `the counter "${this.name}" holds no integer`;
    throw new CodedError('TRANSFER_CORRUPT', message);
  }
}
