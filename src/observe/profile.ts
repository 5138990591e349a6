// Client of profiles: requests a CPU profile from each thread of a process that has an agent (src/agent), or of
// one worker from the agent of its parent.

import { createConnection, type Socket } from 'node:net';
import { basename } from 'node:path';
import {
  agentNameOf,
  agentSocket,
  agentSockets,
  maxProfileSeconds,
  parseProfileAnswer,
  profileQuestion,
} from '../agent/index.js';
import { nodeProcess } from '../blocking-pool/index.js';
import { CodedError } from '../errors.js';
import { integer, onLines, socketPaths } from '../lib/index.js';
import { processGone } from '../proc/index.js';
import { AgentLinks } from './agent-link.js';
import { allWorkers } from './views/pool-view.js';

export interface ThreadProfile {
  /** 0 for the main thread. */
  readonly thread: number;
  /** Number of the worker of that thread; `undefined`: the thread itself. */
  readonly worker: number | undefined;
  /** The content of a file `.cpuprofile`. */
  readonly profile: object;
}

export interface ProfileOptions {
  readonly seconds: number;
  /** Number of the one thread to profile. Default: all. */
  readonly thread?: number | undefined;
  /** Number of a worker of this process, to profile instead. */
  readonly worker?: number | undefined;
}

/** Limit for the answer of a thread at the begin, and after the time is over, in ms. */
const patienceMs = 10_000;
/** The same after a profile of a worker process, which ends between two of its tasks. */
const workerPatienceMs = 300_000;
const maxWorker = 2 ** 31 - 1;
/** A longer profile is not read. */
const maxChars = 2 ** 28;

/** A thread or a worker to profile. */
interface Target {
  /** Socket of the agent that answers. */
  readonly path: string;
  readonly thread: number;
  readonly worker: number | undefined;
  /** True: it begins and ends a profile only between tasks. */
  readonly isProcess: boolean;
  /** Name in messages. */
  readonly label: string;
}

/**
 * Profiles the threads of a process, or one worker: of this process by number, or the worker that is this process.
 * Rejects with `OPTION_INVALID`, `PROCESS_GONE`, `PROCESS_REFUSED`, `PROCESS_NOT_NODE`,
 * `PROCESS_OTHER_PID_NAMESPACE`, `PROFILE_FAILED`, `RUNTIME_FOLDER_REFUSED`.
 */
export async function profileProcess(
  pid: number,
  options: ProfileOptions,
): Promise<ThreadProfile[]> {
  const { seconds, worker } = options;
  integer('--seconds', seconds, 1, maxProfileSeconds);
  if (worker !== undefined) integer('--worker', worker, 1, maxWorker);
  const found = await Promise.all(
    (await targetsOf(pid, options)).map(async (target) => ({
      target,
      profile: await profileOf(target, seconds).catch((cause: unknown) => cause),
    })),
  );
  return found.map(({ target, profile }) => {
    if (profile instanceof Unanswered) throw failed(pid, target, profile);
    return { thread: target.thread, worker: target.worker, profile: Object(profile) };
  });
}

async function targetsOf(pid: number, options: ProfileOptions): Promise<Target[]> {
  const { thread, worker } = options;
  const all = socketPaths(agentSockets).filter((path) => agentNameOf(path).pid === pid);
  if (all.length === 0) {
    const target = await workerProcess(pid, options);
    if (target !== undefined) return [target];
  }
  if (all.length === 0 || process.platform === 'linux') nodeProcess(pid); // throws its own reasons
  const paths = all.filter((path) => thread === undefined || agentNameOf(path).thread === thread);
  if (paths.length === 0) throw noThread(pid, thread, all);
  if (worker !== undefined) return [await numberedWorker(pid, paths, worker)];
  return paths.map((path) => {
    const { thread: number } = agentNameOf(path);
    const label = `thread ${number} of process ${pid}`;
    return { path, thread: number, worker, isProcess: false, label };
  });
}

/** Finds the worker that is this process, in any program; `undefined`: it is none. */
async function workerProcess(
  pid: number,
  { thread, worker }: ProfileOptions,
): Promise<Target | undefined> {
  const workers = await workersAt(socketPaths(agentSockets));
  const target = workers.find((each) => each.pid === pid);
  if (target === undefined || (thread === undefined && worker === undefined)) return target;
  throw new CodedError(
    'PROFILE_FAILED',
    `process ${pid} is itself ${target.label}: give its pid without --thread and --worker`,
  );
}

async function numberedWorker(
  pid: number,
  paths: readonly string[],
  worker: number,
): Promise<Target> {
  const workers = await workersAt(paths);
  const found = workers.filter((each) => each.worker === worker);
  const [target] = found;
  if (target !== undefined && found.length === 1) return target;
  const numbers = workers.map((each) => each.worker).sort((a, b) => Number(a) - Number(b));
  let message = `process ${pid} has no worker ${worker}: `;
  message += numbers.length === 0 ? 'it has none now' : `there are ${numbers.join(', ')}`;
  if (found.length > 1) {
    const threads = found.map((each) => each.thread).join(' and ');
    message = `a worker ${worker} is in threads ${threads} of process ${pid}: choose one with --thread`;
  }
  throw new CodedError('PROFILE_FAILED', message);
}

/** Returns the workers of these threads. One that does not answer has none. */
async function workersAt(
  paths: readonly string[],
): Promise<(Target & { readonly pid: number | undefined })[]> {
  using links = new AgentLinks();
  const answers = await links.poll(paths);
  return answers.flatMap(({ link, stats }) => {
    const path = paths.find((each) => agentSocket(link) === basename(each));
    if (stats === undefined || path === undefined) return [];
    return allWorkers(stats).map(({ id, pid, kind }) => ({
      path,
      thread: stats.thread,
      worker: id,
      pid,
      isProcess: kind !== 'thread',
      label: `worker ${id} of process ${stats.pid}`,
    }));
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
function profileOf({ path, worker, isProcess }: Target, seconds: number): Promise<object> {
  let socket: Socket | undefined;
  let timer: NodeJS.Timeout | undefined;
  const profile = new Promise<object>((resolve, reject) => {
    const connection = createConnection(path);
    socket = connection;
    const waitFor = (ms: number, what: string): void => {
      clearTimeout(timer);
      timer = setTimeout(() => reject(new Unanswered(what)), ms);
    };
    const blocked =
      isProcess && worker !== undefined
        ? 'it is busy with one task, and a process is profiled between tasks or when one awaits (a thread at any time)'
        : 'it does not answer: it is blocked in a callback, or stopped';
    waitFor(patienceMs, blocked);
    connection.on('error', () => {}); // 'close' follows
    connection.on('close', () => reject(new Unanswered()));
    onLines(connection, maxChars, (line) => {
      const answer = parseProfileAnswer(line);
      const endMs = isProcess ? workerPatienceMs : patienceMs;
      if (answer?.started === true) waitFor(seconds * 1000 + endMs, blocked);
      else if (answer?.profile !== undefined) resolve(answer.profile);
      else reject(new Unanswered(answer?.problem ?? 'it has another version of manycore'));
    });
    connection.write(`${profileQuestion({ seconds, worker })}\n`);
  });
  return profile.finally(() => {
    clearTimeout(timer);
    socket?.destroy();
  });
}

function failed(pid: number, { label, path, worker }: Target, { reason }: Unanswered): CodedError {
  if (reason === undefined) return processGone(worker === undefined ? pid : agentNameOf(path).pid);
  const remedy =
    worker === undefined
      ? 'try again, or start it with node --cpu-prof'
      : "try again, or give its pool execArgv: ['--cpu-prof']";
  return new CodedError('PROFILE_FAILED', `${label} cannot be profiled: ${reason}; ${remedy}`);
}

function noThread(pid: number, thread: number | undefined, all: readonly string[]): CodedError {
  const numbers = all.map((path) => agentNameOf(path).thread).sort((a, b) => a - b);
  const message =
    numbers.length === 0
      ? `process ${pid} has no pool, server or loop of manycore and is no worker of one, or has just started: start it with node --cpu-prof for a profile`
      : `process ${pid} has no thread ${thread} with an event loop of manycore: there are ${numbers.join(', ')}`;
  return new CodedError('PROFILE_FAILED', message);
}
