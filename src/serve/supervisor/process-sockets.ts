// The listening sockets that one process accepts from, and the loops in it that listen on each: the supervisor
// answers `listen` of a loop. Where a listener thread accepts for all loops of the process, that gets the socket
// before; else the loop gets it with the answer. Not here: binding (sockets.ts).

import type { ListenAnswer, ListenQuery, ToLoop, ToProcess } from '../protocol.js';
import { dupFds } from '../shared/dup-fds.js';
import type { Link } from '../shared/link.js';
import type { SocketHandle } from '../shared/socket-handle.js';
import type { Sockets } from './sockets.js';

type AllSockets = Pick<Sockets, 'listen' | 'of'>;

export class ProcessSockets {
  /** Number of its own sockets among those that share a port (`Sockets.of`). */
  readonly queue: number;
  /** Numbers of the sockets that it accepts from: its own, and adopted ones. */
  readonly queues: Set<number>;
  readonly #all: AllSockets;
  readonly #process: Link<ToLoop | ToProcess>;
  readonly #isUsable: () => boolean;
  /** Numbers of the sockets that the process has, and of those that its program has closed. */
  readonly #sent = new Set<number>();
  readonly #closed = new Set<number>();
  /** Sockets of which each loop gets a copy, by number. */
  readonly #handles = new Map<number, SocketHandle>();
  /** Numbers of the sockets on which each loop listens, by loop. */
  readonly #listening = new Map<number, Set<number>>();

  /** `process` is the link to the process; `isUsable` returns true while that serves, or may soon. */
  constructor(
    all: AllSockets,
    queue: number,
    process: Link<ToLoop | ToProcess>,
    isUsable: () => boolean,
  ) {
    this.queue = queue;
    this.queues = new Set([queue]);
    this.#all = all;
    this.#process = process;
    this.#isUsable = isUsable;
  }

  /** True: the process accepts from no socket yet. */
  get isEmpty(): boolean {
    return this.#sent.size === 0;
  }

  /** Answers a loop, unless that or its process has ended meanwhile. Resolves with the answer; never rejects. */
  async listen(loop: number, id: number, query: ListenQuery): Promise<ListenAnswer> {
    const numbers = this.#listening.get(loop) ?? new Set();
    this.#listening.set(loop, numbers);
    const answer = await this.#all.listen(query, this.queue);
    const isThere = this.#isUsable() && this.#listening.get(loop) === numbers;
    if (isThere && ('errno' in answer || this.#trySend(answer.number))) {
      const handle = 'errno' in answer ? undefined : this.#handles.get(answer.number);
      if ('number' in answer) numbers.add(answer.number);
      this.#process.post({ loop, id, body: { type: 'answer', answer }, handle });
    }
    return answer;
  }

  /** Makes the process accept from a socket; returns false as `#tryAdopt`. */
  #trySend(number: number): boolean {
    if (this.#sent.has(number)) return true;
    if (!this.#tryAdopt(number, this.queue)) return false;
    this.#sent.add(number);
    this.#closed.delete(number);
    for (const queue of this.queues) {
      if (queue !== this.queue) this.#tryAdopt(number, queue);
    }
    return true;
  }

  /** Returns false when the process has just ended; its exit event follows. */
  #tryAdopt(number: number, queue: number): boolean {
    try {
      const socket = this.#all.of(number, queue);
      if (socket.handle === undefined) {
        this.#process.post({ body: { type: 'adopt', number }, fds: dupFds([socket.fd]) });
      } else this.#handles.set(number, socket.handle);
      return true;
    } catch {
      return false;
    }
  }

  /** Makes the process accept from the sockets of another one that has ended. */
  adopt(queue: number): void {
    this.queues.add(queue);
    for (const number of this.#sent) this.#tryAdopt(number, queue);
  }

  /** Notes that a loop listens no more on a socket, or on none because it has ended. */
  unlisten(loop: number, number?: number): void {
    if (number === undefined) this.#listening.delete(loop);
    else this.#listening.get(loop)?.delete(number);
    const used = new Set([...this.#listening.values()].flatMap((numbers) => [...numbers]));
    for (const each of this.#sent) if (!used.has(each)) this.#drop(each);
  }

  #drop(number: number): void {
    this.#sent.delete(number);
    this.#handles.delete(number);
    this.#closed.add(number);
    this.#process.post({ body: { type: 'drop', number } });
  }

  /**
   * True: the process accepts from the socket with this number, or still may, because programs listen later,
   * too. After the start timeout it is `isLate`.
   */
  mayUse(number: number, isLate: boolean): boolean {
    const isOpen = this.#sent.has(number) || !(isLate || this.#closed.has(number));
    return this.#isUsable() && isOpen;
  }

  /** Forgets a socket number that may be used again. */
  forget(number: number): void {
    this.#closed.delete(number);
  }
}
