// The path beside the channel of a thread worker, for values that have no bytes. A parcel is posted before
// the frame that needs it is sent, and taken from the port when that frame is read: so it is there.
// Not here: what goes into a parcel (context/encode/encode.ts).

import type * as WorkerThreads from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { CodedError } from '../../errors.js';
import { messageOf, type Parcel } from '../../lib/index.js';
import { parseParcel } from '../protocol.js';

export class Parcels {
  readonly #port: MessagePort;
  readonly #threads: typeof WorkerThreads;
  /** Parcels taken from the port, and not yet taken by a frame. */
  readonly #arrived = new Map<number, readonly unknown[]>();

  constructor(port: MessagePort) {
    this.#port = port;
    // Loaded here: a process starts faster and smaller without it.
    this.#threads = process.getBuiltinModule('node:worker_threads');
  }

  /** Throws `TRANSFER_UNSUPPORTED`; then nothing was detached. */
  post(parcel: Parcel): void {
    const { id, values, transfer } = parcel;
    try {
      this.#port.postMessage([id, values], transfer);
    } catch (error) {
      throw untransferable(error);
    }
    parcel.wasPosted = true;
  }

  /** Recalls a parcel: the frame that needs it was reclaimed. */
  recall(parcel: Parcel): void {
    this.#port.postMessage([parcel.id]);
  }

  /** Returns the values of a parcel of the peer, once. Throws `TRANSFER_CORRUPT`. */
  take(id: number): readonly unknown[] {
    // Reads all that is there: a parcel may have been recalled and sent again.
    for (
      let received = this.#threads.receiveMessageOnPort(this.#port);
      received !== undefined;
      received = this.#threads.receiveMessageOnPort(this.#port)
    ) {
      const parcel = parseParcel(received.message);
      if (parcel.values === undefined) this.#arrived.delete(parcel.id);
      else this.#arrived.set(parcel.id, parcel.values);
    }
    const values = this.#arrived.get(id);
    if (values === undefined) {
      throw new CodedError('TRANSFER_CORRUPT', `the values of parcel ${id} did not arrive`);
    }
    this.#arrived.delete(id);
    return values;
  }

  close(): void {
    this.#port.close();
  }
}

/** Returns the error for a value that `postMessage` refused. */
export function untransferable(error: unknown): CodedError {
  const text = `what should be transferred cannot be: ${messageOf(error)}`;
  return new CodedError('TRANSFER_UNSUPPORTED', text, { cause: error });
}
