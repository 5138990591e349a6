// Runs a small program in a process of its own, for faults that would hit this one.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { withDeadline } from '../support/index.js';

export const library = new URL('../../src/public.js', import.meta.url).href;

/** A machine may give this run a fraction of its cores. */
const deadlineMs = 180_000;

export interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ProgramOptions {
  readonly env?: Record<string, string>;
  /** A shell command line that starts the program with "$@". */
  readonly shell?: string;
  /** File name of the program, which decides how Node reads it. */
  readonly name?: string;
}

/**
 * Runs the program; it must end within the deadline. `text` is an ES module unless `name` states otherwise.
 */
export async function runProgram(
  t: TestContext,
  text: string,
  { env = {}, shell, name = 'program.mjs' }: ProgramOptions = {},
): Promise<Ended> {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-fault-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, name);
  writeFileSync(file, text);
  const command = [process.execPath, file];
  return runCommand(t, shell === undefined ? command : ['sh', '-c', shell, 'sh', ...command], env);
}

/** The same for a command. `onFirstError`: called at its first output on standard error. */
export async function runCommand(
  t: TestContext,
  [command = '', ...args]: readonly string[],
  env: Record<string, string> = {},
  onFirstError?: () => void,
): Promise<Ended> {
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  t.after(() => child.kill('SIGKILL'));
  const texts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      texts[name] += text;
    });
  }
  if (onFirstError !== undefined) child.stderr.once('data', onFirstError);
  const closed = new Promise<number | null>((resolve) => child.on('close', resolve));
  const status = await withDeadline(closed, deadlineMs, `${command} ${args.join(' ')} ends`);
  return { status, ...texts };
}
