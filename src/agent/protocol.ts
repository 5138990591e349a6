// The protocol of an agent: questions, one per line, and answers, one line of JSON each. Both ends may be of
// different versions of manycore: a sampler leaves out missing stats.

import type { ProfileAnswer } from './profile.js';
import {
  hasShape,
  matching,
  neededShape,
  sourceShapes,
  spanShape,
  threadShape,
  workerSliceShape,
} from './shapes.js';
import type { Bucket, SourceStats, TaskSlice, TaskSpan, ThreadStats } from './stats.js';

/** Names of the sockets of all threads. */
export const agentSockets = /^agent-\d+\.\d+(-blocking)?\.sock$/;

export interface AgentName {
  readonly pid: number;
  /** 0 for the main thread. */
  readonly thread: number;
  /** True: the thread of a unit that may block it without a limit. */
  readonly mayBlock: boolean;
}

export function agentSocket({ pid, thread, mayBlock }: AgentName): string {
  return `agent-${pid}.${thread}${mayBlock ? '-blocking' : ''}.sock`;
}

/** Parses a path whose file is one of `agentSockets`. */
export function agentNameOf(path: string): AgentName {
  const [, pid, thread, blocking] = /agent-(\d+)\.(\d+)(-blocking)?\.sock$/.exec(path) ?? [];
  return { pid: Number(pid), thread: Number(thread), mayBlock: blocking !== undefined };
}

/**
 * `stats`: the present ones, once. `probedStats`: with the wait for libuv's pool, which costs one job.
 * `tasks`: slices of work from now on. `appMetrics`: those of the program, once. Beside these there is `profileQuestion`.
 */
export type Question = (typeof questions)[number];

const questions = ['stats', 'probedStats', 'tasks', 'appMetrics'] as const;

/** Limit of the length of a question. */
export const maxQuestionChars = 64;

export function parseQuestion(line: string): Question | undefined {
  return questions.find((question) => question === line);
}

/** Limit of a profile, in seconds: it is one line in memory. */
export const maxProfileSeconds = 300;

/** The question for a CPU profile of a thread. */
export function profileQuestion(seconds: number): string {
  return `profile ${seconds}`;
}

/** Returns the seconds of a `profileQuestion`; `undefined` for another line. */
export function parseProfileQuestion(line: string): number | undefined {
  const seconds = Number(/^profile (\d{1,3})$/.exec(line)?.[1] ?? 0);
  return seconds >= 1 && seconds <= maxProfileSeconds ? seconds : undefined;
}

/** Parses a line of the answer to a `profileQuestion`; `undefined`: the text is not of an agent. */
export function parseProfileAnswer(text: string): ProfileAnswer | undefined {
  const value = parsed(text);
  if (value === undefined) return undefined;
  const { started, profile, problem }: ProfileAnswer = value;
  if (started === true) return { started };
  if (typeof problem === 'string') return { problem };
  return isObject(profile) ? { profile } : undefined;
}

/** Parses stats; `undefined`: the text is not of an agent. Malformed parts of sources are left out. */
export function parseStats(text: string): ThreadStats | undefined {
  const value = parsed(text);
  if (value === undefined || !hasShape(neededShape, value)) return undefined;
  const sources = value.sources?.flatMap((each) => parseSource(each) ?? []);
  return { ...Object(matching(threadShape, value)), sources } as ThreadStats;
}

function parseSource(value: unknown): SourceStats | undefined {
  const { kind, id, stats }: Partial<SourceStats> = Object(value);
  const shape = kind !== undefined && Object.hasOwn(sourceShapes, kind) && sourceShapes[kind];
  if (!shape || !Number.isFinite(id) || id === undefined || kind === undefined) return undefined;
  return { kind, id, stats: Object(matching(shape, stats)) };
}

/** Parses a slice; `undefined`: the text is not of an agent. */
export function parseSlice(text: string): TaskSlice | undefined {
  const value = parsed(text);
  const { fromMs, toMs, workers, tasks, running = [], ran = [], waited = [] } = { ...value };
  if (!Number.isFinite(fromMs) || !Number.isFinite(toMs)) return undefined;
  if (fromMs === undefined || toMs === undefined) return undefined;
  const lists = [workers, tasks, running, ran, waited];
  if (!lists.every(Array.isArray) || workers === undefined || tasks === undefined) return undefined;
  return {
    fromMs,
    toMs,
    workers: workers.filter((each) => hasShape(workerSliceShape, each)),
    tasks: tasks.filter(isSpan),
    running: running.filter(isSpan),
    ran: ran.filter(isBucket),
    waited: waited.filter(isBucket),
  };
}

function isSpan(value: TaskSpan): boolean {
  return hasShape(spanShape, value);
}

function isBucket(value: Bucket): boolean {
  return Array.isArray(value) && value.length === 2 && value.every(Number.isFinite);
}

function parsed(text: string): Partial<ThreadStats & TaskSlice & ProfileAnswer> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
