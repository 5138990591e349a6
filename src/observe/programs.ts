// Finds all running programs of this user that use manycore. Agents of threads answer over their sockets
// (agent-link.ts), servers over their control sockets (src/serve). Threads, workers and servers of one
// program are grouped here.

import { agentSockets, type ThreadStats } from '../agent/index.js';
import { socketPaths } from '../lib/index.js';
import { programPath } from '../proc/index.js';
import { remoteServers, type ServerStatus } from '../serve/index.js';
import { AgentLinks, type Answer } from './agent-link.js';
import { processWorkers } from './views/pool-view.js';

export interface FoundServer extends ServerStatus {
  /** Time of its answer, by `performance.now()`. */
  readonly answeredMs: number;
}

/** A thread that has a socket and did not answer in time: it is blocked or stopped. */
export interface SilentThread {
  readonly pid: number;
  readonly thread: number;
  /** True for a worker or a unit that may block: its silence is no problem. */
  readonly mayBlock: boolean;
  /** Stats of its last answer. */
  readonly last: ThreadStats | undefined;
}

/** Everything that one start of a program started: a process, or a supervisor with its processes. */
export interface Program {
  /** The process that was started by hand. */
  readonly pid: number;
  /** The path of the program. */
  readonly title: string;
  readonly servers: readonly FoundServer[];
  /** Threads that answered, main threads first. */
  readonly threads: readonly ThreadStats[];
  readonly silent: readonly SilentThread[];
}

/** Polls the threads of one process; there are none when it does not use manycore. */
export class ProcessThreads implements Disposable {
  readonly #pid: number;
  readonly #links = new AgentLinks();

  constructor(pid: number) {
    this.#pid = pid;
  }

  /**
   * Returns the threads, main thread first. Takes a second when one is silent. `probes`: as in
   * `AgentLink.poll`. Rejects with `RUNTIME_FOLDER_REFUSED`.
   */
  async poll(probes: boolean): Promise<PolledThread[]> {
    const paths = socketPaths(agentSockets).filter((path) => path.includes(`/agent-${this.#pid}.`));
    const answers = await this.#links.poll(paths, () => probes);
    return answers
      .map(({ link: { thread, mayBlock }, stats }) => ({ thread, mayBlock, stats }))
      .sort((a, b) => a.thread - b.thread);
  }

  [Symbol.dispose](): void {
    this.#links[Symbol.dispose]();
  }
}

/** The result of polling one thread. */
export interface PolledThread {
  readonly thread: number;
  /** True: the thread of a unit that may block it, whose silence is no problem. */
  readonly mayBlock: boolean;
  /** `undefined`: no answer in time; the thread is blocked or stopped. */
  readonly stats: ThreadStats | undefined;
}

/** Polls all programs; connections stay open between polls. */
export class Programs implements Disposable {
  readonly #links = new AgentLinks();

  /** Rejects with `RUNTIME_FOLDER_REFUSED`. */
  async poll(): Promise<Program[]> {
    const paths = socketPaths(agentSockets);
    const [answers, servers] = await Promise.all([this.#links.poll(paths), remoteServers()]);
    const parents = workerParents(answers.flatMap(({ link }) => link.last ?? []));
    const grown = new Grown(parents);
    for (const { status, answeredMs } of servers) grown.addServer({ ...status, answeredMs });
    // Loops first: they name their server, and other threads of their processes follow them. Workers last.
    const rank = (thread: ThreadStats): number =>
      isLoop(thread) ? 0 : parents.has(thread.pid) ? 2 : 1;
    const threads = answers.flatMap(({ stats }) => stats ?? []);
    for (const thread of threads.sort((a, b) => rank(a) - rank(b))) grown.addThread(thread);
    for (const { link, stats } of answers) if (stats === undefined) grown.addSilent(link);
    return grown.programs();
  }

  [Symbol.dispose](): void {
    this.#links[Symbol.dispose]();
  }
}

/** Groups parts into programs. Parts are added in this order: servers, threads, silent threads. */
class Grown {
  readonly #programs = new Map<
    number,
    { title: string; servers: FoundServer[]; threads: ThreadStats[]; silent: Answer['link'][] }
  >();
  readonly #parents: ReadonlyMap<number, number>;

  /** `parents`: the process of each worker's pool. */
  constructor(parents: ReadonlyMap<number, number>) {
    this.#parents = parents;
  }

  #program(pid: number, title: () => string) {
    let program = this.#programs.get(pid);
    if (program === undefined) {
      program = { title: title(), servers: [], threads: [], silent: [] };
      this.#programs.set(pid, program);
    }
    return program;
  }

  addServer(server: FoundServer): void {
    this.#program(server.pid, () => server.app).servers.push(server);
  }

  addThread(thread: ThreadStats): void {
    const owner = this.#ownerOf(thread);
    this.#program(owner, () => titleOf(owner, thread)).threads.push(thread);
  }

  addSilent(link: Answer['link']): void {
    const { pid, last } = link;
    const owner = this.#ownerOf(last ?? { pid, sources: [] });
    this.#program(owner, () => titleOf(owner, last)).silent.push(link);
  }

  /** The pid of the program that a thread belongs to. */
  #ownerOf({ pid, sources }: Pick<ThreadStats, 'pid' | 'sources'>): number {
    const server = serverOf(sources);
    if (server !== undefined) return server;
    const process = this.#firstOf(pid);
    const known = [...this.#programs].find(([pid, { servers, threads }]) => {
      const ofServers = servers.flatMap(({ loops }) => loops.map((loop) => loop.pid));
      return [pid, ...ofServers, ...threads.map((thread) => thread.pid)].includes(process);
    });
    return known?.[0] ?? process;
  }

  /** For a worker: the first process up the chain of starts that is no worker; for others `pid` itself. */
  #firstOf(pid: number): number {
    const seen = new Set<number>(); // reported parents may form a cycle
    let first = pid;
    for (let at: number | undefined = pid; at !== undefined && !seen.has(at); ) {
      first = at;
      seen.add(at);
      at = this.#parents.get(at);
    }
    return first;
  }

  programs(): Program[] {
    return [...this.#programs]
      .map(([pid, { title, servers, threads, silent }]) => ({
        pid,
        title,
        servers,
        threads: threads.sort(
          (a, b) => isOf(pid, b) - isOf(pid, a) || a.pid - b.pid || a.thread - b.thread,
        ),
        silent: silent.map(({ pid, thread, mayBlock, last }) => ({
          pid,
          thread,
          mayBlock: mayBlock || this.#parents.has(pid),
          last,
        })),
      }))
      .sort((a, b) => a.pid - b.pid);
  }
}

/** 1: a thread of that process; 0: any other. For sorting. */
function isOf(pid: number, thread: ThreadStats): number {
  return thread.pid === pid ? 1 : 0;
}

function isLoop({ sources }: ThreadStats): boolean {
  return serverOf(sources) !== undefined;
}

/** Maps each worker process to the process of its pool; for a worker in several pools, any one of them. */
function workerParents(threads: readonly ThreadStats[]): ReadonlyMap<number, number> {
  return new Map(
    threads.flatMap((thread) =>
      processWorkers(thread).map(({ pid }) => [pid, thread.pid] as const),
    ),
  );
}

/** `thread`: any thread of the program with stats; `undefined`: none has reported yet. */
function titleOf(owner: number, thread: ThreadStats | undefined): string {
  const isItsMain = thread?.pid === owner && thread.thread === 0;
  return (isItsMain ? thread.title : programPath(owner)) || (thread?.title ?? '');
}

/** Pid of the server for a thread that is one of its loops; `undefined` for other threads. */
function serverOf(sources: ThreadStats['sources']): number | undefined {
  const served = sources.find(({ kind }) => kind === 'servedLoop');
  const { server }: { server?: unknown } = Object(served?.stats);
  return typeof server === 'number' ? server : undefined;
}
