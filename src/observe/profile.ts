// Client of profiles: requests a CPU profile from each thread of a process that has an agent (src/agent).
// Threads without one, as those of workers, cannot be profiled.

import { createConnection, type Socket } from 'node:net';
import {
  agentNameOf,
  agentSockets,
  maxProfileSeconds,
  parseProfileAnswer,
  profileQuestion,
} from '../agent/index.js';
import { nodeProcess } from '../blocking-pool/index.js';
import { CodedError } from '../errors.js';
import { integer, onLines, socketPaths } from '../lib/index.js';
import { processGone } from '../proc/index.js';

export interface ThreadProfile {
  /** 0 for the main thread. */
  readonly thread: number;
  /** The content of a file `.cpuprofile`. */
  readonly profile: object;
}

export interface ProfileOptions {
  readonly seconds: number;
  /** Number of the one thread to profile. Default: all. */
  readonly thread?: number | undefined;
}

/** Limit for the answer of a thread at the begin, and after the time is over, in ms. */
const patienceMs = 10_000;
/** A longer profile is not read. */
const maxChars = 2 ** 28;

/**
 * Profiles the threads of a process. Rejects with `OPTION_INVALID`, `PROCESS_GONE`, `PROCESS_REFUSED`,
 * `PROCESS_NOT_NODE`, `PROCESS_OTHER_PID_NAMESPACE`, `PROFILE_FAILED`, `RUNTIME_FOLDER_REFUSED`.
 */
export async function profileProcess(
  pid: number,
  { seconds, thread }: ProfileOptions,
): Promise<ThreadProfile[]> {
  integer('--seconds', seconds, 1, maxProfileSeconds);
  const all = socketPaths(agentSockets).filter((path) => agentNameOf(path).pid === pid);
  if (all.length === 0 || process.platform === 'linux') nodeProcess(pid); // throws its own reasons
  const paths = all.filter((path) => thread === undefined || agentNameOf(path).thread === thread);
  if (paths.length === 0) throw noThread(pid, thread, all);
  const profiles = paths.map(async (path) => {
    const { thread: number } = agentNameOf(path);
    const profile = await profileAt(path, seconds).catch((cause: unknown) => cause);
    return { thread: number, profile };
  });
  const found = await Promise.all(profiles);
  return found.map(({ thread: number, profile }) => {
    if (profile instanceof Unanswered) throw failed(pid, number, profile);
    return { thread: number, profile: Object(profile) };
  });
}

/** The reason why a thread sent no profile; `undefined`: its process has ended, or the thread. */
class Unanswered extends Error {
  readonly reason: string | undefined;

  constructor(reason?: string) {
    super(reason);
    this.reason = reason;
  }
}

/** Rejects with `Unanswered`. */
function profileAt(path: string, seconds: number): Promise<object> {
  let socket: Socket | undefined;
  let timer: NodeJS.Timeout | undefined;
  const profile = new Promise<object>((resolve, reject) => {
    const connection = createConnection(path);
    socket = connection;
    const waitFor = (ms: number, what: string): void => {
      clearTimeout(timer);
      timer = setTimeout(() => reject(new Unanswered(what)), ms);
    };
    const blocked = 'it does not answer: it is blocked in a callback, or stopped';
    waitFor(patienceMs, blocked);
    connection.on('error', () => {}); // 'close' follows
    connection.on('close', () => reject(new Unanswered()));
    onLines(connection, maxChars, (line) => {
      const answer = parseProfileAnswer(line);
      if (answer?.started === true) waitFor(seconds * 1000 + patienceMs, blocked);
      else if (answer?.profile !== undefined) resolve(answer.profile);
      else reject(new Unanswered(answer?.problem ?? 'it has another version of manycore'));
    });
    connection.write(`${profileQuestion(seconds)}\n`);
  });
  return profile.finally(() => {
    clearTimeout(timer);
    socket?.destroy();
  });
}

function failed(pid: number, thread: number, { reason }: Unanswered): CodedError {
  if (reason === undefined) return processGone(pid);
  return new CodedError(
    'PROFILE_FAILED',
    `thread ${thread} of process ${pid} cannot be profiled: ${reason}; try again, or start it with node --cpu-prof`,
  );
}

function noThread(pid: number, thread: number | undefined, all: readonly string[]): CodedError {
  const numbers = all.map((path) => agentNameOf(path).thread).sort((a, b) => a - b);
  const message =
    numbers.length === 0
      ? `process ${pid} has no pool, server or loop of manycore, or has just started: start it with node --cpu-prof for a profile`
      : `process ${pid} has no thread ${thread} with an event loop of manycore: there are ${numbers.join(', ')}`;
  return new CodedError('PROFILE_FAILED', message);
}
