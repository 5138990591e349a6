// All programs of this user that use manycore, as they are now: agents of threads answer over their sockets
// (agent-link.ts), servers over theirs (src/serve), and what belongs together is put together.

import { agentSockets, type ThreadStats } from '../agent/index.js';
import { socketPaths } from '../internal/index.js';
import { programPath } from '../proc/index.js';
import { remoteServers, type ServerStatus } from '../serve/index.js';
import { AgentLinks, type Answer } from './agent-link.js';
import { processWorkers } from './pool-view.js';

export interface FoundServer extends ServerStatus {
  /** When it answered, by `performance.now()`. */
  readonly answeredMs: number;
}

/** A thread that has a socket and did not answer in time: it is blocked, or stopped. */
export interface SilentThread {
  readonly pid: number;
  readonly thread: number;
  /** A worker, or a unit that may block: its silence says nothing. */
  readonly mayBlock: boolean;
  /** What it told before. */
  readonly last: ThreadStats | undefined;
}

/** What one start of a program has brought about: a process, or a supervisor with its processes. */
export interface Program {
  /** Of the process that was started by hand. */
  readonly pid: number;
  /** The path of the program. */
  readonly title: string;
  readonly servers: readonly FoundServer[];
  /** Those that answered, main threads first. */
  readonly threads: readonly ThreadStats[];
  readonly silent: readonly SilentThread[];
}

/** The threads of one process; none where it does not use manycore. */
export class ProcessThreads implements Disposable {
  readonly #pid: number;
  readonly #links = new AgentLinks();

  constructor(pid: number) {
    this.#pid = pid;
  }

  /**
   * Main thread first; takes a second where one is silent. `probes`: as in `AgentLink.poll`. Rejects with
   * `RUNTIME_FOLDER_REFUSED`.
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

/** A thread that has been asked for its stats. */
export interface PolledThread {
  readonly thread: number;
  /** It is that of a unit that may block it: a silent one is not therefore in need of help. */
  readonly mayBlock: boolean;
  /** `undefined`: no answer in time; it is blocked, or stopped. */
  readonly stats: ThreadStats | undefined;
}

/** Asks again and again, over connections that are kept. */
export class Programs implements Disposable {
  readonly #links = new AgentLinks();

  /** Throws `RUNTIME_FOLDER_REFUSED`. */
  async poll(): Promise<Program[]> {
    const paths = socketPaths(agentSockets);
    const [answers, servers] = await Promise.all([this.#links.poll(paths), remoteServers()]);
    const parents = workerParents(answers.flatMap(({ link }) => link.last ?? []));
    const grown = new Grown(parents);
    for (const { status, answeredMs } of servers) grown.addServer({ ...status, answeredMs });
    // Loops first: they say whose they are, and other threads of their processes go with them. Workers last.
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

/** Programs while their parts come in: first servers, then threads, last those that are silent. */
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

  /** Of a worker the process that is none, and has started it, or the worker that has. */
  #firstOf(pid: number): number {
    const seen = new Set<number>(); // what is told need not be true
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

/** 1 for a thread of that process, otherwise 0. */
function isOf(pid: number, thread: ThreadStats): number {
  return thread.pid === pid ? 1 : 0;
}

function isLoop({ sources }: ThreadStats): boolean {
  return serverOf(sources) !== undefined;
}

/** Of each worker that is a process, the one of its pool; of one in several pools, any of theirs. */
function workerParents(threads: readonly ThreadStats[]): ReadonlyMap<number, number> {
  return new Map(
    threads.flatMap((thread) =>
      processWorkers(thread).map(({ pid }) => [pid, thread.pid] as const),
    ),
  );
}

/** `thread`: one of the program, as far as it has told something. */
function titleOf(owner: number, thread: ThreadStats | undefined): string {
  const isItsMain = thread?.pid === owner && thread.thread === 0;
  return (isItsMain ? thread.title : programPath(owner)) || (thread?.title ?? '');
}

/** The pid of the server, where a thread is one of its loops. */
function serverOf(sources: ThreadStats['sources']): number | undefined {
  const served = sources.find(({ kind }) => kind === 'servedLoop');
  const { server }: { server?: unknown } = Object(served?.stats);
  return typeof server === 'number' ? server : undefined;
}
