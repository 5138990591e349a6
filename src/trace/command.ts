// A command that is started to be traced. It waits until the trace counts: a shell holds it back, and
// becomes the command when it is let go, with the same process number. Its terminal is ours.

import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { CodedError } from '../errors.js';
import { exitCodeOf, messageOf } from '../internal/index.js';
import { hasOnlyCounters, type TraceMethod } from './methods.js';
import { PreloadCounts } from './preload.js';
import type { ProcessIdentity } from './proc.js';
import { RequestCounts } from './request-counts.js';

/** Says that it is there, waits for an answer, and becomes the command; without an answer it ends. */
const holding = 'echo ready >&3; read -r _ <&3 || exit 125; exec 3<&-; exec "$@"';

/** What is counted inside of a command. */
interface Counting {
  /** By a library in it; why it counts nothing; `undefined` where it need not. */
  readonly calls: PreloadCounts | string | undefined;
  /** By its Node programs; why they count nothing. */
  readonly requests: RequestCounts | string;
}

/** Whether a process is the shell that holds a command back. */
export function isHeld({ args }: ProcessIdentity): boolean {
  return args.includes(holding);
}

export class TracedCommand {
  readonly pid: number;
  readonly args: readonly string[];
  readonly counting: Counting;
  /** Resolves with its exit code, 128 and the signal's number when a signal has ended it. */
  readonly ended: Promise<number>;
  readonly #child: ChildProcess;

  /** By `startCommand`. */
  constructor(child: ChildProcess, pid: number, args: readonly string[], counting: Counting) {
    this.pid = pid;
    this.args = args;
    this.counting = counting;
    this.#child = child;
    this.ended = new Promise((resolve) => {
      child.once('exit', (code, signal) => resolve(exitCodeOf(code, signal)));
    });
  }

  get counts(): PreloadCounts | undefined {
    return made(this.counting.calls);
  }

  get requests(): RequestCounts | undefined {
    return made(this.counting.requests);
  }

  /** It runs from here on. */
  release(): void {
    const gate = this.#child.stdio[3];
    if (gate !== undefined && gate !== null && 'end' in gate) gate.end('go\n');
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Removes what was counted. */
  close(): void {
    closeCounts(this.counting);
  }
}

function made<Counts extends object>(counts: Counts | string | undefined): Counts | undefined {
  return typeof counts === 'object' ? counts : undefined;
}

function closeCounts({ calls, requests }: Counting): void {
  made(calls)?.close();
  made(requests)?.close();
}

/**
 * Starts a command, held back. Its Node programs count the requests that they answer; where only counters
 * work it counts its calls itself, too, by a library that is loaded into it. Throws `TRACE_COMMAND_FAILED`.
 */
export async function startCommand(
  command: readonly string[],
  method?: TraceMethod | undefined,
): Promise<TracedCommand> {
  const [name = ''] = command;
  const problem = findProblem(name);
  if (problem !== undefined) throw failed(name, problem);
  const counting = {
    calls: hasOnlyCounters(method) ? PreloadCounts.create() : undefined,
    requests: RequestCounts.create(command),
  };
  try {
    const env = { ...made(counting.calls)?.env, ...made(counting.requests)?.env };
    const { child, pid } = await hold(command, env);
    return new TracedCommand(child, pid, command, counting);
  } catch (error) {
    closeCounts(counting);
    throw failed(name, messageOf(error));
  }
}

/** Resolves once the shell waits. */
async function hold(
  command: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<{ readonly child: ChildProcess; readonly pid: number }> {
  const child = spawn('/bin/sh', ['-c', holding, 'sh', ...command], {
    env: { ...process.env, ...env },
    stdio: ['inherit', 'inherit', 'inherit', 'pipe'],
  });
  const gate = child.stdio[3];
  await new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', () => reject(new Error('the shell that starts it has ended')));
    gate?.once('data', () => resolve());
  });
  // What the command leaves unread is none of our business.
  gate?.on('error', () => {});
  if (child.pid === undefined) throw new Error('it has no process');
  return { child, pid: child.pid };
}

function failed(name: string, reason: string): CodedError {
  return new CodedError(
    'TRACE_COMMAND_FAILED',
    `${name} cannot be started: ${reason}; give a program that can run, such as node app.js`,
  );
}

/** Why there is no such program, before a shell has to say so. */
function findProblem(name: string): string | undefined {
  if (name === '') return 'it has no name';
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  const paths = name.includes('/') ? [name] : folders.map((folder) => join(folder, name));
  const found = paths.filter(isFile);
  if (found.length === 0) return name.includes('/') ? 'there is no such file' : 'it is not on PATH';
  return found.some(mayRun) ? undefined : 'it may not be executed';
}

/** A folder that may not be entered has none, as for a shell. */
function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function mayRun(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
