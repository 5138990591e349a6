// Settings of the transactional memory: variables of the environment, read when it is made and when a thread joins.

import { invalid } from '../../lib/index.js';

const mib = 2 ** 20;
/** Bytes that nobody has written take no memory. */
const defaultMemoryMib = 1024;
/** Room for the notes of all threads, and some values. */
const minMemoryMib = 16;
const maxMemoryMib = 4096;
const defaultPatienceMs = 1000;
const maxPatienceMs = 3_600_000;

export interface TransactionSettings {
  readonly memoryBytes: number;
  /** The longest wait for a thread that has stopped in the middle of a commit. */
  readonly patienceMs: number;
}

/** Reads `MANYCORE_STM_MEMORY_MIB` and `MANYCORE_STM_PATIENCE_MS`. Throws `OPTION_INVALID`. */
export function transactionSettings(): TransactionSettings {
  const memoryMib = setting(
    'MANYCORE_STM_MEMORY_MIB',
    defaultMemoryMib,
    minMemoryMib,
    maxMemoryMib,
  );
  const patienceMs = setting('MANYCORE_STM_PATIENCE_MS', defaultPatienceMs, 1, maxPatienceMs);
  return { memoryBytes: memoryMib * mib, patienceMs };
}

function setting(name: string, byDefault: number, least: number, most: number): number {
  const text = process.env[name] ?? '';
  if (text === '') return byDefault;
  const value = Number(text);
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw invalid(name, text, `an integer from ${least} to ${most}`);
}
