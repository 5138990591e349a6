// Threads beside the loops of one process: starts and ends them for their loops, and forwards their messages
// of the mesh. Not here: the loops themselves (process.ts).

import { Worker } from 'node:worker_threads';
import { offerChannel, Wire } from '../../channels/index.js';
import {
  type FromLoop,
  parseFromLoop,
  type SideTicket,
  type ToLoop,
  travelled,
} from '../protocol.js';
import type { MeshLoop } from './process-mesh.js';

type FromMember = Extract<FromLoop, { type: 'join' | 'offer' }>;

interface ThreadsParts {
  readonly args: readonly string[];
  /** Returns a number that was not used before in this process. */
  readonly nextSerial: () => number;
  /** Called when a thread has started, and for each of its messages of the mesh. */
  readonly onStart: (member: MeshLoop) => void;
  readonly onMember: (member: MeshLoop, message: FromMember) => void;
  readonly onEnd: (member: MeshLoop) => void;
}

interface Owner {
  readonly post: (message: ToLoop) => void;
}

export class ProcessThreads<Loop extends Owner> {
  readonly #parts: ThreadsParts;
  readonly #threads = new Map<Loop, Map<number, Worker>>();

  constructor(parts: ThreadsParts) {
    this.#parts = parts;
  }

  receive(loop: Loop, message: Extract<FromLoop, { type: 'startThread' | 'endThread' }>): void {
    const { thread } = message;
    if (message.type === 'endThread') {
      void this.#threads.get(loop)?.get(thread)?.terminate();
      return;
    }
    try {
      this.#start(loop, message);
    } catch (error) {
      loop.post({ type: 'threadEnded', thread, error: travelled(error) }); // no thread, no memory
    }
  }

  #start(loop: Loop, { thread, entry, data }: Extract<FromLoop, { type: 'startThread' }>): void {
    const { args, nextSerial, onStart, onMember, onEnd } = this.#parts;
    const offer = offerChannel('memory', { worker: 'thread', spin: false });
    const ticket: SideTicket = { kind: 'side', channel: offer.ticket, data };
    const worker = new Worker(new URL(entry), {
      workerData: ticket,
      transferList: [...offer.transfer],
      argv: [...args],
    });
    const wire = new Wire<ToLoop>(offer.open(undefined).channel, {
      onMessage: (message) => {
        const parsed = parseFromLoop(message);
        if (parsed.type === 'join' || parsed.type === 'offer') onMember(member, parsed);
      },
    });
    wire.unref(); // the loop keeps the process
    const member: MeshLoop = { serial: nextSerial(), post: (message) => wire.post(message) };
    const own = this.#threads.get(loop) ?? new Map<number, Worker>();
    this.#threads.set(loop, own.set(thread, worker));
    onStart(member);
    let error: unknown;
    worker.once('error', (thrown) => {
      error = thrown;
    });
    worker.once('exit', () => {
      own.delete(thread);
      onEnd(member);
      const why = error === undefined ? undefined : travelled(error);
      loop.post({ type: 'threadEnded', thread, error: why });
    });
  }

  /** Ends the threads of a loop that has ended. */
  loopEnded(loop: Loop): void {
    for (const worker of this.#threads.get(loop)?.values() ?? []) void worker.terminate();
    this.#threads.delete(loop);
  }
}
