// Threads beside the loops of one process: starts and ends them for their loops. Not here: the loops themselves,
// and the way of messages of such a thread (process.ts).

import { Worker } from 'node:worker_threads';
import { offerChannel } from '../../channels/index.js';
import { type ArrivedEnvelope, type ProcessRequest, type ToLoop, travelled } from '../protocol.js';
import { type Link, threadPort, WireLink } from '../shared/link.js';
import type { SideTicket } from '../tickets.js';

interface ThreadsParts {
  readonly args: readonly string[];
  /** Called when a thread has started; returns its number in messages. */
  readonly onStart: (link: Link<ToLoop>) => number;
  /** Called with each message of a thread to the supervisor. */
  readonly onEnvelope: (serial: number, envelope: ArrivedEnvelope) => void;
  readonly onEnd: (serial: number) => void;
}

interface Owner {
  readonly link: Link<ToLoop>;
}

export class ProcessThreads<Loop extends Owner> {
  readonly #parts: ThreadsParts;
  /** By the number that the loop has given to each. */
  readonly #threads = new Map<Loop, Map<number, Worker>>();

  constructor(parts: ThreadsParts) {
    this.#parts = parts;
  }

  receive(
    loop: Loop,
    message: Extract<ProcessRequest, { type: 'startThread' | 'endThread' }>,
  ): void {
    const { id } = message;
    if (message.type === 'endThread') {
      void this.#threads.get(loop)?.get(id)?.terminate();
      return;
    }
    try {
      this.#start(loop, message);
    } catch (error) {
      // No thread, no memory.
      loop.link.post({ id, body: { type: 'threadEnded', error: travelled(error) } });
    }
  }

  #start(loop: Loop, { id, entry, data }: Extract<ProcessRequest, { type: 'startThread' }>): void {
    const { args, onStart, onEnvelope, onEnd } = this.#parts;
    const offer = offerChannel('memory', { worker: 'thread', spin: false });
    const ticket: SideTicket = { kind: 'side', channel: offer.ticket, data };
    const worker = new Worker(new URL(entry), {
      workerData: ticket,
      transferList: [...offer.transfer],
      argv: [...args],
    });
    const link = new WireLink<ToLoop>(offer.open(undefined).channel, threadPort, {
      onEnvelope: (envelope) => onEnvelope(serial, envelope),
    });
    link.unref(); // the loop keeps the process
    const serial = onStart(link);
    const own = this.#threads.get(loop) ?? new Map<number, Worker>();
    this.#threads.set(loop, own.set(id, worker));
    let error: unknown;
    worker.once('error', (thrown) => {
      error = thrown;
    });
    worker.once('exit', () => {
      own.delete(id);
      onEnd(serial);
      const why = error === undefined ? undefined : travelled(error);
      loop.link.post({ id, body: { type: 'threadEnded', error: why } });
    });
  }

  /** Ends the threads of a loop that has ended. */
  loopEnded(loop: Loop): void {
    for (const worker of this.#threads.get(loop)?.values() ?? []) void worker.terminate();
    this.#threads.delete(loop);
  }
}
