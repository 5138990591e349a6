// Partitions of all engines for hostile code, and the checks of what is around them. Not here: the attempts.

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Pool, PoolOptions, SandboxOptions } from '../../src/public.js';
import { waitFor } from '../support/index.js';
import {
  codeOf,
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

/** Removes what earlier calls have left in the partition; not what it shows of outside. */
export function emptyTmp(): void {
  requirePartition();
  for (const name of readdirSync('/tmp')) {
    try {
      rmSync(`/tmp/${name}`, { recursive: true });
    } catch {} // it may be read alone
  }
}

/** One that does not end in this time fails its test. */
const deadlineMs = 30_000;

/** An end of a partition by what it does. */
export interface End {
  readonly name: string;
  /** Never answers. */
  readonly run: () => unknown;
  /** Code and text. */
  readonly seen: RegExp;
  readonly limits?: Limits;
  readonly timeoutMs?: number;
}

/** Tests each end in a sandbox of its own, and those with these names in guests, on one pool with these limits. */
export function testEnds(
  ends: readonly End[],
  ofGuests: Limits,
  inGuests = ends.map(({ name }) => name),
): void {
  const options: PoolOptions = { onOutput: () => {}, graceMs: 50 };
  const check = async (
    pool: Pool,
    { name, run, seen, timeoutMs = deadlineMs }: End,
  ): Promise<void> => {
    await assert.rejects(pool.with({ timeoutMs }).run(run), (error) => {
      assert.match(`${codeOf(error)} ${error}`, seen, name);
      return true;
    });
  };
  for (const end of ends) {
    test(`a sandbox ends for ${end.name}`, { skip }, async (t) => {
      const pool = sandboxPool(t, { outputMb: 1, ...end.limits }, options);
      await check(pool, end);
      await assertWell(pool);
    });
  }
  for (const wall of ['uml', 'gvisor'] as const) {
    test(`${wall}: it ends for ${inGuests.length} of the same`, {
      skip: skipWall(wall),
    }, async (t) => {
      const pool = wallPool(t, wall, ofGuests, options);
      for (const end of ends) {
        if (inGuests.includes(end.name)) await check(pool, end);
      }
      await assertWell(pool);
    });
  }
}
