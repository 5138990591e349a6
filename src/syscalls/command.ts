// A command that is started under a trace. A shell holds it back until the trace counts, and then becomes
// the command, with the same process number. The command shares our terminal.

import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { CodedError } from '../errors.js';
import { exitCodeOf, messageOf } from '../lib/index.js';
import { hasOnlyCounters, type TraceMethod } from './methods.js';
import { PreloadCounts } from './preload.js';
import { RequestCounts } from './request-counts.js';
import type { ProcessIdentity } from './samples.js';

/** Writes `ready`, waits for an answer, and becomes the command; ends without an answer. */
const holding = 'echo ready >&3; read -r _ <&3 || exit 125; exec 3<&-; exec "$@"';

/** Counters inside a command. */
interface Counting {
  /** Calls counted by a preloaded library, or the reason for none; `undefined` where it is not needed. */
  readonly calls: PreloadCounts | string | undefined;
  /** Requests counted by its Node programs, or the reason for none. */
  readonly requests: RequestCounts | string;
}

/** Returns true for the shell that holds a command back. */
export function isHeld({ args }: ProcessIdentity): boolean {
  return args.includes(holding);
}

export class TracedCommand {
  readonly pid: number;
  readonly args: readonly string[];
  readonly counting: Counting;
  /** Resolves with its exit code: 128 plus the signal's number after a signal. */
  readonly ended: Promise<number>;
  readonly #child: ChildProcess;

  /** Called by `startCommand`. */
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

  /** Lets the command run. */
  release(): void {
    const gate = this.#child.stdio[3];
    if (gate !== undefined && gate !== null && 'end' in gate) gate.end('go\n');
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Removes the counters' files. */
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
 * Starts a command, held back. Its Node programs count their requests; where only counters work, a
 * preloaded library counts its calls. Throws `TRACE_COMMAND_FAILED`.
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
  // errors of a command that leaves its input unread are ignored
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

/** Returns the reason why a program is missing, before a shell reports it. */
function findProblem(name: string): string | undefined {
  if (name === '') return 'it has no name';
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  const paths = name.includes('/') ? [name] : folders.map((folder) => join(folder, name));
  const found = paths.filter(isFile);
  if (found.length === 0) return name.includes('/') ? 'there is no such file' : 'it is not on PATH';
  return found.some(mayRun) ? undefined : 'it may not be executed';
}

/** Returns false inside folders without access, as a shell does. */
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
