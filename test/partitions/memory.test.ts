// The transactional memory of the program is not that of a sandbox: none of its variables can be read or set there.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../../src/errors.js';
import { atomically, named, tmap, tvar } from '../../src/stm/public.js';
import { sandboxPool, skip } from './support.js';

test('variables and collections of the program are refused in a sandbox', { skip }, async (t) => {
  const pool = sandboxPool(t);
  const [variable, map] = [tvar(1), tmap<string, number>()];
  map.set('key', 1);
  const uses: readonly (() => unknown)[] = [
    () => variable.peek(),
    () => atomically(() => variable.set(2)),
    () => map.get('key'),
    () => map.set('key', 2),
    () => tvar(1),
    () => atomically(() => 1),
    () => named('of both', () => tvar(1)),
  ];
  for (const use of uses) {
    await assert.rejects(pool.run(use), (error) => {
      assert.ok(hasCode(error, 'STM_OTHER_MEMORY'), String(error));
      assert.match(String(error), /a sandbox has no part in/);
      return true;
    });
  }
  assert.deepEqual([variable.peek(), map.get('key')], [1, 1]);
});

test('no descriptor of it reaches a sandbox', { skip }, async (t) => {
  tvar(1);
  const pool = sandboxPool(t);
  const targets = await pool.run(async () => {
    const { readdirSync, readlinkSync } = await import('node:fs');
    return readdirSync('/proc/self/fd').map((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`);
      } catch {
        return '';
      }
    });
  });
  assert.ok(targets.length > 0);
  assert.deepEqual(
    targets.filter((target) => target.includes('memfd')),
    [],
  );
});
