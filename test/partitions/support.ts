// Pools of sandboxes for tests, and the reason where this machine can have none.

import { existsSync, readdirSync, readFileSync, readlinkSync, writeSync } from 'node:fs';
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
/** Runs `attempt` and returns the code of what it throws; `done`: it threw nothing. Sent into sandboxes. */
export async function outcome(attempt: () => unknown): Promise<string> {
  try {
    await attempt();
    return 'done';
  } catch (error) {
    const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined;
    return typeof code === 'string' ? code : String(error);
  }
}

/** The code of an error, and the error itself in its place where it has none. */
export function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : String(error);
}

/** Sent into sandboxes: writes on their channel what they like, past manycore. */
export function forger(): {
  readonly fd: number;
  readonly write: (bytes: Buffer) => void;
  readonly frame: (
    kind: number,
    slot: number,
    target: number,
    body?: Buffer,
    size?: number,
  ) => Buffer;
} {
  const isSocket = (fd: number): boolean => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith('socket:');
    } catch {
      return false;
    }
  };
  const fd = readdirSync('/proc/self/fd')
    .map(Number)
    .find((each) => each > 2 && isSocket(each));
  if (fd === undefined) throw new Error('it has no channel');
  const write = (bytes: Buffer): void => {
    for (let at = 0; at < bytes.length; ) {
      try {
        at += writeSync(fd, bytes, at);
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error;
      }
    }
  };
  const frame = (
    kind: number,
    slot: number,
    target: number,
    body: Buffer = Buffer.alloc(0),
    size: number = body.length,
  ): Buffer => {
    const head = Buffer.alloc(16);
    head.writeUInt32LE(size, 0);
    head.writeInt32LE(kind, 4);
    head.writeInt32LE(slot, 8);
    head.writeInt32LE(target, 12);
    return Buffer.concat([head, body]);
  };
  return { fd, write, frame };
}
