// The public names of 'manycore/stm'. Re-exports only; api/stm.d.ts has their types.

/**
 * Transactional memory between processes.
 *
 * @module manycore/stm
 */

export * from './index.js';
