// Connections to the agents of threads (src/agent), kept open from poll to poll: an agent samples delays and
// pauses while a connection that has polled it is open.

import { createConnection, type Socket } from 'node:net';
import { agentNameOf, parseStats, type ThreadStats } from '../agent/index.js';
import { onLines, removeLeftSocket } from '../lib/index.js';

const answerLimitMs = 1000;
/** A longer answer is not parsed. */
const maxAnswerChars = 2 ** 24;

class AgentLink {
  readonly pid: number;
  readonly thread: number;
  /** True: the thread may block without a limit, so its silence is no problem. */
  readonly mayBlock: boolean;
  readonly #socket: Socket;
  #answer: ((line: string | undefined) => void) | undefined;
  /**
   * True: a question is unanswered. A blocked thread gets no second one: it would answer all of them later.
   */
  #isPolling = false;
  #isUnreached = false;
  isClosed = false;
  /** The latest answer. */
  last: ThreadStats | undefined;

  constructor(path: string) {
    const { pid, thread, mayBlock } = agentNameOf(path);
    this.pid = pid;
    this.thread = thread;
    this.mayBlock = mayBlock;
    this.#socket = createConnection(path);
    this.#socket.unref();
    let isConnected = false;
    this.#socket.once('connect', () => {
      isConnected = true;
    });
    this.#socket.on('error', ({ code }: NodeJS.ErrnoException) => {
      if (code === 'ECONNREFUSED') removeLeftSocket(path);
      // For instance EAGAIN: the backlog is full.
      else this.#isUnreached = !isConnected && code !== 'ENOENT';
    });
    this.#socket.on('close', () => this.close());
    onLines(this.#socket, maxAnswerChars, (line) => {
      this.#isPolling = false;
      this.#answer?.(line);
    });
  }

  /** True: the thread has ended. */
  get isGone(): boolean {
    return this.isClosed && !this.#isUnreached;
  }

  /** Returns the present stats; `undefined`: no answer in time. `probes`: with the wait for libuv's pool. */
  async poll(probes = false): Promise<ThreadStats | undefined> {
    const line = await new Promise<string | undefined>((resolve) => {
      const timer = setTimeout(() => resolve(undefined), answerLimitMs);
      this.#answer = (answer) => {
        clearTimeout(timer);
        resolve(answer);
      };
      if (this.isClosed) this.#answer(undefined);
      else if (!this.#isPolling) {
        this.#isPolling = true;
        this.#socket.write(probes ? 'probedStats\n' : 'stats\n');
      }
    });
    this.#answer = undefined;
    const stats = line === undefined ? undefined : parseStats(line);
    this.last = stats ?? this.last;
    return stats;
  }

  close(): void {
    this.isClosed = true;
    this.#answer?.(undefined);
    this.#socket.destroy();
  }
}

export interface Answer {
  readonly link: AgentLink;
  /** `undefined`: no answer in time; the thread is blocked or stopped. */
  readonly stats: ThreadStats | undefined;
}

/** One connection per thread: a blocked thread accepts no second one. */
export class AgentLinks implements Disposable {
  readonly #links = new Map<string, AgentLink>();

  /**
   * Polls the threads behind these sockets and closes all other links. Threads that have ended are not in the
   * result. `probes`: as in `AgentLink.poll`.
   */
  async poll(
    paths: readonly string[],
    probes: (link: AgentLink) => boolean = () => false,
  ): Promise<Answer[]> {
    for (const [path, link] of this.#links) {
      if (paths.includes(path) && !link.isClosed) continue;
      link.close();
      this.#links.delete(path);
    }
    const polls = paths.map(async (path) => {
      const link = this.#links.get(path) ?? new AgentLink(path);
      this.#links.set(path, link);
      const stats = await link.poll(probes(link));
      return stats === undefined && link.isGone ? [] : [{ link, stats }];
    });
    return (await Promise.all(polls)).flat();
  }

  [Symbol.dispose](): void {
    for (const link of this.#links.values()) link.close();
    this.#links.clear();
  }
}
