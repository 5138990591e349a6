// The protocol of an agent: questions, one per line, and answers, one line of JSON each. Both ends may be of
// different versions of manycore: a sampler leaves out missing stats.

import { type ProfileAnswer, profileAnswerOf } from '../lib/index.js';
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

export interface ProfileQuestion {
  readonly seconds: number;
  /** Number of a worker of this thread; `undefined`: the thread itself. */
  readonly worker: number | undefined;
}

/** The question for a CPU profile of a thread, or of a worker of its pools. */
export function profileQuestion({ seconds, worker }: ProfileQuestion): string {
  return worker === undefined ? `profile ${seconds}` : `profile ${seconds} of ${worker}`;
}

/** Parses a `profileQuestion`; `undefined`: it is another line. */
export function parseProfileQuestion(line: string): ProfileQuestion | undefined {
  const [, seconds = 0, worker] = /^profile (\d{1,3})(?: of (\d{1,15}))?$/.exec(line) ?? [];
  const isValid = Number(seconds) >= 1 && Number(seconds) <= maxProfileSeconds;
  if (!isValid) return undefined;
  return { seconds: Number(seconds), worker: worker === undefined ? undefined : Number(worker) };
}

/** Parses a line of the answer to a `profileQuestion`; `undefined`: the text is not of an agent. */
export function parseProfileAnswer(text: string): ProfileAnswer | undefined {
  return profileAnswerOf(parsed(text));
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
  if (typeof kind !== 'string' || !Object.hasOwn(sourceShapes, kind)) return undefined;
  const shape = sourceShapes[kind];
  if (!shape || !Number.isFinite(id) || id === undefined) return undefined;
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

function parsed(text: string): Partial<ThreadStats & TaskSlice> | undefined {
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
