// The load in its three forms: a command of the user, a script of theirs, or a task, which makes the tuned
// program its own load. Each runs for some seconds and returns its measurements.

import { fileURLToPath } from 'node:url';
import { CodedError } from '../../errors.js';
import { beforeDeadline } from '../../lib/index.js';
import { describeExit } from '../../worker/index.js';
import { Group, type GroupExit } from '../program/group.js';
import { filledLine } from '../program/shell.js';
import { type FromRunner, parseFromRunner, type RunMessage } from '../protocol.js';
import { type LoadResult, parseLoadOutput } from './load-output.js';

/** Address of the program. */
export interface Target {
  readonly url: string;
  readonly port: number;
}

export interface LoadRun extends Target {
  readonly seconds: number;
  /** True: the measurements are dropped. */
  readonly isWarmUp: boolean;
  readonly signal: AbortSignal;
}

/** Rejects with `TUNE_LOAD_FAILED`, `ABORTED`. */
export type Load = (run: LoadRun) => Promise<LoadResult>;

const entryPath = fileURLToPath(new URL('./tune-entry.js', import.meta.url));

/** Time by which a load may exceed the requested length, in ms. */
const lateMs = 30_000;
/** Limit for a command whose line has no `{seconds}`, in ms. */
const maxUnlimitedMs = 600_000;
/** Share of the requested time below which a load ended early. */
const earlyShare = 0.5;
/** Limit of the output that is kept. */
const maxOutputChars = 1_000_000;

/** `wrk -d{seconds} --latency {url}`: for the shell, with placeholders. */
export function commandLoad(line: string): Load {
  const takesSeconds = line.includes('{seconds}');
  return async ({ url, port, seconds, isWarmUp, signal }) => {
    const wholeSeconds = Math.max(1, Math.round(seconds));
    const command = filledLine(line, { url, port: String(port), seconds: String(wholeSeconds) });
    let output = '';
    const group = new Group({
      command: [command],
      isShell: true,
      onOutput: (text) => {
        output = (output + text).slice(-maxOutputChars); // the result is at the end
      },
    });
    const begin = performance.now();
    // A command with a length of its own is cut at the end of the warm-up.
    const isCut = isWarmUp && !takesSeconds;
    const timer = isCut ? setTimeout(() => void group.end(), seconds * 1000) : undefined;
    try {
      const exit = await waitFor(
        group.ended,
        takesSeconds ? wholeSeconds * 1000 + lateMs : maxUnlimitedMs,
        signal,
      );
      if (isCut) return { requests: 1, errors: 0 };
      const tookMs = performance.now() - begin;
      return resultOf(
        command,
        { exit, output, lastLine: group.lastOutput },
        takesSeconds ? wholeSeconds : 0,
        tookMs,
      );
    } finally {
      clearTimeout(timer);
      await group.end();
    }
  };
}

interface CommandResult {
  readonly exit: GroupExit;
  readonly output: string;
  readonly lastLine: string;
}

/** `requestedSeconds` 0: the command got no length. */
function resultOf(
  command: string,
  { exit, output, lastLine }: CommandResult,
  requestedSeconds: number,
  tookMs: number,
): LoadResult {
  const printed = (lastLine || output.trim().split('\n').at(-1)) ?? '';
  if (exit.exitCode !== 0) throw failed(`"${command}" ended ${howIt(exit)}`, printed);
  if (isEarly(tookMs, requestedSeconds)) {
    throw failed(`"${command}" ended ${earlyText(tookMs, requestedSeconds)}`, printed);
  }
  const result = parseLoadOutput(output);
  if (result === undefined) {
    const wanted =
      'the output of wrk or autocannon --json, or {"requests": …, "p50Ms": …, "p99Ms": …}';
    throw failed(`"${command}" printed no readable result, such as ${wanted}`, printed);
  }
  return checked({ ...result, seconds: result.seconds ?? tookMs / 1000 }, `"${command}"`);
}

function isEarly(tookMs: number, requestedSeconds: number): boolean {
  return tookMs < requestedSeconds * 1000 * earlyShare;
}

function earlyText(tookMs: number, requestedSeconds: number): string {
  return `after ${(tookMs / 1000).toFixed(1)} s of ${requestedSeconds}`;
}

function howIt(exit: GroupExit): string {
  return exit.error === undefined
    ? describeExit({ ...exit, error: undefined })
    : `before it began (${exit.error.message})`;
}

/** Throws for a load without an answer: it measures nothing. */
function checked(result: LoadResult, what: string): LoadResult {
  if (result.requests > 0) return result;
  const errors = result.errors > 0 ? `${result.errors} errors` : 'no answer at all';
  throw failed(`${what} had no request with a good answer, and ${errors}`, '');
}

function failed(what: string, printed: string): CodedError {
  const words = printed === '' ? '' : `, and printed "${printed.slice(0, 200)}"`;
  return new CodedError(
    'TUNE_LOAD_FAILED',
    `the load ${what}${words}: run it by hand against the program first`,
  );
}

/** Returns the load of a module whose default export sends requests. */
export function scriptLoad(path: string): Load {
  return async (run) => {
    const group = runnerGroup(['load', path]);
    try {
      return await runIn(group, run, `script ${path}`);
    } finally {
      await group.end();
    }
  };
}

/** Returns the arguments of node for a task; its process sends `ready`. */
export function taskCommand(path: string, concurrency: number): string[] {
  return [process.execPath, entryPath, 'task', path, String(concurrency)];
}

function runnerGroup(args: readonly string[]): Group {
  return new Group({ command: [process.execPath, entryPath, ...args], hasIpc: true });
}

/** Runs a script or task in `group` once. */
export async function runIn(group: Group, run: LoadRun, what: string): Promise<LoadResult> {
  const { url, port, seconds, signal } = run;
  const message: RunMessage = { type: 'run', url, port, seconds };
  const answer = answerOf(group);
  group.child.send(message, () => {}); // a process that has ended is reported below
  const ended = group.ended.then((exit): FromRunner => {
    const words = group.lastOutput === '' ? '' : `: ${group.lastOutput}`;
    return { type: 'failed', message: `it ended ${howIt(exit)}${words}` };
  });
  const reply = await waitFor(Promise.race([answer, ended]), seconds * 1000 + lateMs, signal);
  if (reply.type === 'failed') throw failed(`${what} failed`, reply.message);
  if (reply.type === 'ready' || reply.result === undefined) {
    throw failed(`${what} has to resolve with { requests, p50Ms, p99Ms }, and did not`, '');
  }
  const { result, tookMs } = reply;
  if (result.seconds === undefined && isEarly(tookMs, seconds)) {
    throw failed(
      `${what} returned ${earlyText(tookMs, seconds)}, without seconds in its result`,
      '',
    );
  }
  return checked({ ...result, seconds: result.seconds ?? tookMs / 1000 }, what);
}

/** Resolves with the next message other than `ready`. */
function answerOf(group: Group): Promise<FromRunner> {
  return new Promise((resolve) => {
    const onMessage = (value: unknown): void => {
      const message = parseFromRunner(value);
      if (message === undefined || message.type === 'ready') return;
      group.child.off('message', onMessage);
      resolve(message);
    };
    group.child.on('message', onMessage);
  });
}

function waitFor<T>(work: Promise<T>, deadlineMs: number, signal: AbortSignal): Promise<T> {
  const seconds = Math.round(deadlineMs / 1000);
  return beforeDeadline(work, {
    deadlineMs,
    signal,
    onDeadline: () => failed(`did not end within ${seconds} s`, ''),
  });
}
