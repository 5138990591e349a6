// Transactional memory: variables that processes change together or not at all.

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
