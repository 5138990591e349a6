// The process's side without the native core: a scoreboard of its own, whose rows it sends to the supervisor, and
// handles of listening sockets, each for one loop.

import { setInterval } from '../../lib/index.js';
import type { ProcessSystem } from '../process/system.js';
import type { Envelope, FromProcess, ToLoop } from '../protocol.js';
import { createBoard, type Row, rowsOf } from '../shared/board.js';
import type { LinkListener } from '../shared/link.js';
import type { SocketHandle } from '../shared/socket-handle.js';
import type { LoopSystem, PortableProcessTicket, ProcessTicket } from '../tickets.js';
import { ParentLink } from './ipc-link.js';
import { wordsOf, writeEveryMs } from './rows.js';

export class PortableProcessSystem implements ProcessSystem {
  readonly board: SharedArrayBuffer;
  readonly up: ParentLink;
  readonly ofLoops: LoopSystem;
  readonly loopsListen = true;
  readonly #rows: readonly Row[];
  /**
   * Handles of sockets that threads have: the thread owns the descriptor, and Node would close it with the
   * object.
   */
  readonly #ofThreads = new Set<SocketHandle>();

  constructor(
    { process: number, loops }: ProcessTicket,
    { processes }: PortableProcessTicket,
    listener: Required<LinkListener>,
  ) {
    this.board = createBoard(processes, loops.max);
    this.#rows = rowsOf(this.board)[number] ?? [];
    this.ofLoops = { kind: 'portable', board: this.board };
    this.up = new ParentLink(listener);
    setInterval(() => this.wake(), writeEveryMs).unref();
  }

  addSocket(): void {} // loops listen

  removeSocket(): void {}

  wake(): void {
    const body: FromProcess = { type: 'rows', rows: wordsOf(this.#rows) };
    this.up.post({ body });
  }

  /** A thread gets a descriptor: all threads of a process have the same. */
  forThread({ handle, ...envelope }: Envelope<ToLoop>): Envelope<ToLoop> {
    if (handle === undefined) return envelope;
    this.#ofThreads.add(handle);
    return { ...envelope, fds: [handle.fd] };
  }

  close(): void {}
}
