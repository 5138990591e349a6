// The package in a context of node:vm that is gone, as that of a test file is in Jest: later work of the
// library loads nothing. Jest prints an error for each module that is requested then, and exits with 1.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const program = fileURLToPath(new URL('../fixtures/realm-end.js', import.meta.url));

/** Leftovers of a test file: a promise, `left`. */
const leftovers: Record<string, string> = {
  'a task that is over': 'const k = 2; globalThis.left = library.run(() => k); await left;',
  'a task that runs': 'globalThis.left = library.run(() => new Map([[1, { n: 2n }]]));',
  'a task that fails': `globalThis.left = library.run(() => JSON.parse('{')).catch(() => {});`,
  'a worker that dies': 'globalThis.left = library.run(() => process.exit(3)).catch(() => {});',
  'a map': 'globalThis.left = library.pmap([1, 2, 3], (n) => n + 1);',
  'a task over a socket': `const pool = new library.Pool({ channel: 'socket', size: 1 });
    globalThis.left = pool.run(() => 1).finally(() => pool.close());`,
  'a task in a thread': `const pool = new library.Pool({ worker: 'thread', size: 1 });
    globalThis.left = pool.run(() => 1).finally(() => pool.close());`,
};

for (const [name, text] of Object.entries(leftovers)) {
  test(`${name} loads nothing when its test file is gone, and its workers leave`, async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [program, text]);
    assert.deepEqual(JSON.parse(stdout), []);
  });
}
