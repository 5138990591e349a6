// Node programs with thread pools of known state, each in a process of its own.

import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { readBlockingPool } from '../../src/blocking-pool/index.js';

export const skip = process.platform !== 'linux' && 'processes can be inspected on Linux only';
/** This Node may have been stripped of its symbols. */
export const skipCounting = !isCounted() && 'the symbols of this Node cannot be read';

function isCounted(): boolean {
  try {
    return readBlockingPool().method === 'memory';
  } catch {
    return false;
  }
}

/** Jobs that do not end, and no thread is left for `lookups`. */
export const saturated = ({ jobs = 9, lookups = 0 } = {}): string => `
  const { pbkdf2 } = require('node:crypto');
  const { lookup } = require('node:dns');
  for (let at = 0; at < ${jobs}; at += 1) pbkdf2('a', 'b', 2 ** 31 - 1, 64, 'sha512', () => {});
  for (let at = 0; at < ${lookups}; at += 1) lookup('localhost', () => {});`;

/** Uses its pool once, and has nothing to do afterwards. */
export const idle = `
  require('node:fs').stat('/', () => {});
  setInterval(() => {}, 1000);`;

/** Between no job and fifty at any time, as fast as they can be done. */
export const changing = `
  const { stat } = require('node:fs');
  const { lookup } = require('node:dns');
  const again = () => stat('/', again);
  for (let at = 0; at < 40; at += 1) again();
  const lookUp = () => lookup('localhost', lookUp);
  for (let at = 0; at < 10; at += 1) lookUp();`;

export interface Program {
  readonly child: ChildProcess;
  readonly pid: number;
}

/** Ends with the test. Its pool has 4 threads, whatever ours has. */
export async function startProgram(
  t: TestContext,
  text: string,
  { command = [process.execPath], ...options }: SpawnOptions & { command?: string[] } = {},
): Promise<Program> {
  const [file = '', ...args] = command;
  const { UV_THREADPOOL_SIZE: _, NODE_OPTIONS: __, ...env } = process.env;
  const child = spawn(file, [...args, '-e', text], { stdio: 'ignore', env, ...options });
  const ended = once(child, 'exit');
  t.after(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  await once(child, 'spawn');
  return { child, pid: child.pid ?? 0 };
}

/** Copies this Node, with another section in place of its table of symbols, as after `strip`. */
export function withoutSymbols(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-node-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'node');
  copyFileSync(process.execPath, path, constants.COPYFILE_FICLONE);
  chmodSync(path, 0o700);
  const bytes = readFileSync(path);
  const [sectionsAt, count] = [Number(bytes.readBigUInt64LE(40)), bytes.readUInt16LE(60)];
  const fd = openSync(path, 'r+');
  for (let at = 0; at < count; at += 1) {
    const typeAt = sectionsAt + 64 * at + 4;
    if (bytes.readUInt32LE(typeAt) === 2) writeSync(fd, Buffer.alloc(4), 0, 4, typeAt);
  }
  closeSync(fd);
  return path;
}
