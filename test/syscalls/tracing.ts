// Runs `manycore trace` in a process of its own, and returns its report as data; and the reasons for which
// kernels cannot count here, to skip tests.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { CountedRequests } from '../../src/cli/commands/trace/trace-report.js';
import { nativeBinding } from '../../src/native.js';
import type { TraceMethod, TraceReport } from '../../src/syscalls/index.js';
import { type Ended, runCommand } from '../faults/child.js';
import { withDeadline } from '../support/index.js';

export const command = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url));

/** Reason why the kernel cannot count here; `false` if it can. */
export const cannotCount: Readonly<Record<'ebpf' | 'raw', string | false>> = {
  ebpf: problemOf('ebpf'),
  raw: problemOf('raw'),
};

export const notLinux = process.platform !== 'linux' && 'traces are for Linux';
export const notRoot = process.getuid?.() !== 0 && 'only root may take rights away';

function problemOf(method: 'ebpf' | 'raw'): string | false {
  const binding = nativeBinding();
  if (binding === undefined) return 'there is no native binary';
  try {
    binding.NativeTracer.start(method, [], []).close();
    return false;
  } catch (error) {
    return `the kernel does not count here: ${error instanceof Error ? error.message : error}`;
  }
}

export interface Traced extends Ended {
  readonly report: TraceReport & { readonly requests: CountedRequests | null };
}

export interface TraceOptions {
  readonly env?: Record<string, string>;
  /** Words in front of the command line. */
  readonly before?: readonly string[];
  /** Called when an already running process is traced. */
  readonly onBegin?: () => void;
}

/** Runs `manycore trace` with its report in a file, so that the program's output stays its own. */
export async function trace(
  t: TestContext,
  args: readonly string[],
  { env = {}, before = [], onBegin }: TraceOptions = {},
): Promise<Traced> {
  const file = join(scratch(t), 'report.json');
  const flags = ['trace', '--json', '--output', file, ...args];
  const line = [...before, process.execPath, command, ...flags];
  const ended = await runCommand(t, line, env, onBegin);
  try {
    const report: Traced['report'] = JSON.parse(readFileSync(file, 'utf8'));
    return { ...ended, report };
  } catch (error) {
    assert.fail(`no report (${String(error)}): ${ended.stderr}`);
  }
}

/** Traces a program, given as text for `node -e`. */
export function traceText(
  t: TestContext,
  method: TraceMethod,
  text: string,
  options: { env?: Record<string, string> } = {},
): Promise<Traced> {
  return trace(t, ['--method', method, '--', process.execPath, '-e', text], options);
}

export const noCompiler =
  spawnSync('cc', ['--version']).status !== 0 && 'there is no C compiler (apt-get install gcc)';

/** Compiles a C program of this text; returns its path. */
export function compile(t: TestContext, text: string): string {
  const folder = scratch(t);
  const [source, program] = [join(folder, 'program.c'), join(folder, 'program')];
  writeFileSync(source, text);
  const { status, stderr } = spawnSync('cc', ['-O1', '-w', '-pthread', '-o', program, source]);
  assert.equal(status, 0, `${stderr}`);
  return program;
}

export function scratch(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-trace-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Starts a program that runs until the end of the test; resolves after its first output. */
export async function start(
  t: TestContext,
  [name = '', ...args]: readonly string[],
  options: { uid?: number } = {},
): Promise<ChildProcess & { readonly pid: number }> {
  const child = spawn(name, args, { stdio: ['ignore', 'pipe', 'inherit'], ...options });
  t.after(() => child.kill('SIGKILL'));
  const firstOutput = new Promise((resolve) => child.stdout.once('data', resolve));
  await withDeadline(firstOutput, 20_000, `first output of ${name}`);
  const { pid } = child;
  assert.ok(pid !== undefined);
  return Object.assign(child, { pid });
}

/** A Node program with a system call now and then, which prints a line first. */
export const ticking = "console.log('here'); setInterval(() => require('fs').statSync('/'), 10);";

/** Returns the count of a call, over all threads. */
export function countOf({ calls }: TraceReport, name: string): number {
  return calls.find((call) => call.name === name)?.count ?? 0;
}
