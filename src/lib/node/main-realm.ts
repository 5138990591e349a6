// The realm in which this library runs: that of the process, or a context of node:vm.

import vm from 'node:vm';

/**
 * False in a context of node:vm, as Jest and the vmThreads of Vitest make one for each test file. Such a context
 * may be gone while timers of this library still run: they must not load modules.
 */
export const isMainRealm = vm.runInThisContext('globalThis') === globalThis;
