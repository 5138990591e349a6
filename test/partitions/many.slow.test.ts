// A hundred sandboxes, one after the other: nothing of them stays in the program.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { waitFor } from '../support/index.js';
import { groups, sandboxPool, sandboxProcesses, skip } from './support.js';

const mounts = (): number => readFileSync('/proc/self/mountinfo', 'utf8').split('\n').length;
const descriptors = (): number => readdirSync('/proc/self/fd').length;

test('mounts and descriptors are as before', { skip }, async (t) => {
  const first = sandboxPool(t);
  await first.run(() => 1);
  await first.close();
  await waitFor(() => sandboxProcesses().length === 0 && groups().length === 0);
  const [mountsBefore, descriptorsBefore] = [mounts(), descriptors()];
  const pool = sandboxPool(t, {}, { maxTasksPerWorker: 1 });
  const ids = new Set<number | undefined>(); // the system uses numbers of processes again
  for (let at = 0; at < 100; at += 1) {
    await pool.warm();
    ids.add(pool.stats().workers[0]?.id);
    assert.equal(await pool.run((x: number) => x, at), at);
  }
  assert.ok(ids.size >= 100, `${ids.size} sandboxes`);
  await pool.close();
  await waitFor(() => sandboxProcesses().length === 0 && groups().length === 0);
  await waitFor(() => descriptors() <= descriptorsBefore);
  assert.equal(mounts(), mountsBefore);
});
