// `manycore trace PID` and `manycore trace -- COMMAND`: traces until the time is over, the program ends or
// SIGINT arrives, then prints the report. A command keeps its terminal: the report goes to standard error,
// and the exit code is that of the command. With --seconds a command is ended afterwards, with all processes
// that it started.
// Not here: the text of the report (trace-report.ts), counting requests (trace-requests.ts).

import { CodedError } from '../../../errors.js';
import { startTimer } from '../../../lib/index.js';
import {
  endProcesses,
  foldCounts,
  foldTimes,
  startCommand,
  startTrace,
  type Trace,
  type TracedCommand,
  type TraceMethod,
  type TraceReport,
  writeTraceFile,
} from '../../../syscalls/index.js';
import { needsForwarding } from '../../ctrl-c.js';
import { FileWrites } from '../../file-writes.js';
import { type CallGroup, type CountedRequests, requestsText, textReport } from './trace-report.js';
import { TracedRequests } from './trace-requests.js';

export interface TraceFlags {
  readonly seconds?: number;
  readonly method?: TraceMethod;
  readonly by?: CallGroup;
  readonly json?: boolean;
  readonly output?: string;
  readonly folded?: string;
  readonly foldedCounts?: string;
}

const defaultSeconds = 5;

/** Traces a process or a command. Rejects with `TRACE_…`. */
export async function traceProgram(target: readonly string[], flags: TraceFlags): Promise<void> {
  if (flags.seconds === 0) {
    throw new CodedError('OPTION_INVALID', '--seconds must be 1 or more');
  }
  const [first = ''] = target;
  if (target.length > 1 || !/^\d+$/.test(first)) await traceCommand(target, flags);
  else await traceProcess(Number(first), flags);
}

async function traceProcess(pid: number, flags: TraceFlags): Promise<void> {
  const trace = startTrace(pid, { method: flags.method });
  const requests = new TracedRequests(trace, false);
  const interrupted = firstSignal(() => {});
  const seconds = flags.seconds ?? defaultSeconds;
  await requests.begin();
  console.error(
    `tracing process ${pid} for ${seconds} s by ${trace.method}: Ctrl-C ends it sooner`,
  );
  await Promise.race([trace.ended, interrupted, after(seconds)]);
  const counted = await requests.end();
  const text = show(trace.stop(), counted, flags);
  if (text !== '') console.log(text);
}

async function traceCommand(target: readonly string[], flags: TraceFlags): Promise<void> {
  const command = await startCommand(target, flags.method);
  const trace = traceHeld(command, flags);
  const requests = new TracedRequests(trace, true);
  void firstSignal(async (signal) => {
    if (!needsForwarding(signal)) return;
    await requests.poll(); // an ending server answers no polls
    command.kill(signal);
  });
  await requests.begin();
  command.release();
  const { seconds } = flags;
  const isOver = seconds !== undefined && after(seconds).then(() => true);
  const ends = command.ended.then(() => false);
  const isCut = await Promise.race(isOver === false ? [ends] : [ends, isOver]);
  const counted = await requests.end(command.requests);
  const text = show(trace.stop(), counted, flags);
  if (text !== '') console.error(text);
  if (isCut) await endProcesses(trace.running);
  const exitCode = await command.ended;
  process.exitCode ??= exitCode;
}

/** Starts the trace of a held command. Throws the errors of `startTrace`, after ending the command. */
function traceHeld(command: TracedCommand, flags: TraceFlags): Trace {
  try {
    return startTrace(command.pid, { method: flags.method, command });
  } catch (error) {
    command.kill('SIGKILL');
    command.close();
    throw error;
  }
}

/** Resolves at the first signal that ends programs; calls `onSignal` for each. */
function firstSignal(onSignal: (signal: NodeJS.Signals) => unknown): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => {
        onSignal(signal);
        resolve();
      });
    }
  });
}

/** Resolves after a time; never when it exceeds the range of timers. */
function after(seconds: number): Promise<void> {
  return new Promise((resolve) => void startTimer(seconds * 1000, resolve)?.unref());
}

/** Writes the files; returns the text to print, empty when it went to a file. */
function show(
  report: TraceReport,
  requests: CountedRequests | undefined,
  flags: TraceFlags,
): string {
  const text = flags.json
    ? JSON.stringify({ ...report, requests: requests ?? null }, undefined, 2)
    : textReport(report, requests === undefined ? [] : requestsText(report, requests), flags.by);
  const files = new FileWrites();
  const write = (path: string | undefined, content: () => string): boolean =>
    path !== undefined && files.do(() => writeTraceFile(path, content()));
  write(flags.folded, () => foldTimes(report));
  write(flags.foldedCounts, () => foldCounts(report));
  const isWritten = write(flags.output, () => `${text}\n`);
  if (files.printFailures()) process.exitCode = 2;
  return isWritten ? '' : text;
}
