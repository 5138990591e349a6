// Partitions of all engines for hostile code, and the checks of what is around them. Not here: the attempts.

import assert from 'node:assert/strict';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Pool, PoolOptions, SandboxOptions } from '../../src/public.js';
import { waitFor } from '../support/index.js';
import {
  groups,
  guestProcesses,
  sandboxPool,
  sandboxProcesses,
  skip,
  skipVm,
  vmPool,
} from './support.js';

export type Wall = 'sandbox' | 'uml' | 'gvisor';
export const walls: readonly Wall[] = ['sandbox', 'uml', 'gvisor'];
/** Options that all partitions have. */
export type Limits = Omit<SandboxOptions, 'kind' | 'network' | 'maxProcesses' | 'cpuPercent'>;

/** For `test(name, { skip }, …)`. */
export function skipWall(wall: Wall): string | false {
  return wall === 'sandbox' ? skip : skipVm(wall);
}

export function wallPool(t: TestContext, wall: Wall, limits: Limits, options?: PoolOptions): Pool {
  return wall === 'sandbox'
    ? sandboxPool(t, limits, options)
    : vmPool(t, { engine: wall, ...limits }, options);
}

/** The program goes on, and when the pool is gone nothing of its partitions is left. */
export async function assertWell(pool: Pool): Promise<void> {
  assert.equal(await pool.run(() => 1), 1);
  assert.equal(Reflect.get({}, 'polluted'), undefined);
  await pool.destroy();
  await waitFor(() => sandboxProcesses().length === 0 && groups().length === 0);
  await waitFor(() => guestProcesses().length === 0);
}

export function folder(t: TestContext): string {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'manycore-partition-')));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Never ends. Sent into partitions. */
export function silence(): Promise<never> {
  return new Promise(() => {});
}

/** Throws in a program that is in no partition: there the attempt would end more than itself. */
export function requirePartition(): void {
  if (process.env['HOME'] !== '/tmp' || process.env['PATH'] !== '') {
    throw new Error('it is in no partition');
  }
}
