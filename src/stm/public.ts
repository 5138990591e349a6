// The public names of 'manycore/stm'. Re-exports only; api/stm.d.ts has their types.

/**
 * Transactional memory between processes.
 *
 * @module manycore/stm
 */

export {
  afterCommit,
  atomically,
  check,
  free,
  nested,
  orElse,
  retry,
} from './atomically.js';
export { atomicallyWhen, type WhenOptions } from './sleep.js';
export { type TVar, tvar } from './tvar.js';
