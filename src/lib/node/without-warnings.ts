// Work without the warnings of experimental features that it uses.

import vm from 'node:vm';
import { isMainRealm } from './main-realm.js';

/** Runs `body` while warnings of experimental features that we chose to use are off. */
export function withoutWarnings<T>(body: () => T): T {
  // Test runners have another `process` in their contexts.
  const own: NodeJS.Process = isMainRealm ? process : Object(vm.runInThisContext('process'));
  const { emitWarning } = own;
  own.emitWarning = () => {};
  try {
    return body();
  } finally {
    own.emitWarning = emitWarning;
  }
}
