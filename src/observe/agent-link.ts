// Connections to the agents of threads (src/agent), over which they are asked again and again: an agent
// measures what costs something while a connection that has asked is open.

import { createConnection, type Socket } from 'node:net';
import { agentNameOf, parseStats, type ThreadStats } from '../agent/index.js';
import { onLines, removeLeftSocket } from '../internal/index.js';

const answerLimitMs = 1000;
/** A longer answer is none. */
const maxAnswerChars = 2 ** 24;

class AgentLink {
  readonly pid: number;
  readonly thread: number;
  /** A silent one is not therefore in need of help. */
  readonly mayBlock: boolean;
  readonly #socket: Socket;
  #answer: ((line: string | undefined) => void) | undefined;
  /** A thread that is blocked is not asked again: it would answer all questions when it is back. */
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
      // As EAGAIN, where as many wait already as may.
      else this.#isUnreached = !isConnected && code !== 'ENOENT';
    });
    this.#socket.on('close', () => this.close());
    onLines(this.#socket, maxAnswerChars, (line) => {
      this.#isPolling = false;
      this.#answer?.(line);
    });
  }

  /** Whether there is no such thread any more. */
  get isGone(): boolean {
    return this.isClosed && !this.#isUnreached;
  }

  /** `probes`: whether it finds out how long jobs wait for libuv's pool. `undefined`: no answer in time. */
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
  /** `undefined`: no answer in time; it is blocked, or stopped. */
  readonly stats: ThreadStats | undefined;
}

/** One connection for each thread: one that is blocked accepts no second. */
export class AgentLinks implements Disposable {
  readonly #links = new Map<string, AgentLink>();

  /**
   * Asks the threads behind these sockets, and lets go of all others. Threads that have ended give no answer.
   * `probes`: as in `AgentLink.poll`.
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
