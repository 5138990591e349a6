// `manycore serve` in a process of its own.

import assert from 'node:assert/strict';
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { childrenOf, killOne, waitFor } from '../support/index.js';

/** The program `manycore`. */
export const command = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url));
export const deadlineMs = 30_000;
/** An exported app that answers with the pid of its supervisor. */
export const exported = 'export default (request, response) => response.end(String(process.ppid));';

export interface Running {
  readonly child: ChildProcess;
  readonly lines: readonly string[];
  readonly errors: readonly string[];
  /** Port at the end of its first line; NaN without a port. */
  readonly port: number;
  readonly pids: readonly number[];
}

/** Starts a server with these arguments, until the end of the test. */
export async function startWith(
  t: TestContext,
  flags: readonly string[],
  options: SpawnOptions = {},
): Promise<Running> {
  const child = spawn(process.execPath, [command, 'serve', ...flags], {
    stdio: ['ignore', 'pipe', 'pipe'],
    ...options,
  });
  t.after(() => child.kill('SIGKILL'));
  const lines = linesOf(child.stdout);
  const errors = linesOf(child.stderr);
  child.stderr?.pipe(process.stderr);
  const first = await waitFor(
    () => lines.find((line) => line.startsWith('listening on ')),
    deadlineMs,
  );
  const pids = childrenOf(child.pid ?? 0).map(({ pid }) => pid);
  return { child, lines, errors, port: Number(first.split(':').at(-1)), pids };
}

/** Lines so far; grows. */
function linesOf(stream: Readable | null): readonly string[] {
  const lines: string[] = [];
  if (stream !== null) createInterface({ input: stream }).on('line', (line) => lines.push(line));
  return lines;
}

/** Upgrades by the signal until the successor serves alone; returns its pid. */
export async function upgrade(
  { child, errors }: Running,
  before: number | undefined,
): Promise<number> {
  killOne(child.pid, 'SIGUSR2');
  return await waitFor(() => {
    assert.deepEqual(errors, []);
    const successors = successorsOf(child.pid);
    const [only, second] = successors;
    return second === undefined && only !== before ? only : undefined;
  }, deadlineMs);
}

/** Children that run the command; a server process has another entry. */
function successorsOf(pid: number | undefined): number[] {
  const all = childrenOf(pid ?? 0);
  const isCommand = (line: string) => line.includes(`${command} serve`);
  const servers = all.filter(({ commandLine }) => !isCommand(commandLine));
  return servers.length > 0 ? [] : all.map((each) => each.pid);
}
