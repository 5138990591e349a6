// Pools of sandboxes for tests, and the reason where this machine can have none.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { Pool, type PoolOptions, type SandboxOptions } from '../../src/public.js';
import { partitionProblem } from '../../src/worker/index.js';

/** For `test(name, { skip }, …)`. */
export const skip = partitionProblem()?.message ?? false;

export function sandboxPool(
  t: TestContext,
  sandbox: Omit<SandboxOptions, 'kind'> = {},
  options: PoolOptions = {},
): Pool {
  const pool = new Pool({ size: 1, ...options, worker: { kind: 'sandbox', ...sandbox } });
  t.after(() => pool.destroy());
  return pool;
}

/** Groups that sandboxes of this machine have now. */
export function groups(): string[] {
  const root = '/sys/fs/cgroup';
  const folders = existsSync(root)
    ? [root, ...readdirSync(root).map((name) => join(root, name))]
    : [];
  return folders.flatMap((folder) =>
    namesIn(folder)
      .filter((name) => /^manycore-\d+$/.test(name))
      .map((name) => join(folder, name)),
  );
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Processes of sandboxes that this process has started. */
export function sandboxProcesses(): string[] {
  return namesIn('/proc').filter((name) => {
    try {
      const command = readFileSync(`/proc/${name}/cmdline`, 'utf8');
      return /manycore-enter\0(run|enter)|bwrap\0/.test(command);
    } catch {
      return false;
    }
  });
}
