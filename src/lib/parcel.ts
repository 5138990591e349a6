// Values that have no bytes, on their way to another thread of this process: the bytes that need them
// hold the number of their parcel, and the values go beside the frames, as `postMessage` sends them.
// Not here: which values these are (context/values/live.ts), the port that they take (worker/both/parcels.ts).

import type { Transferable } from 'node:worker_threads';

let lastId = 0;

export class Parcel {
  /** The only one of this thread with that number. */
  readonly id: number;
  values: unknown[] = [];
  /** Leaves this thread with the parcel, which goes once then. */
  transfer: Transferable[] = [];
  /** A worker has it. */
  wasPosted = false;
  /** True: its transferables have left the caller. */
  #isDetached = false;

  constructor() {
    lastId += 1;
    this.id = lastId;
  }

  /** Returns the index of `value` in the parcel. */
  add(value: object, moved: Transferable | undefined): number {
    if (moved !== undefined && !this.transfer.includes(moved)) this.transfer.push(moved);
    return this.values.push(value) - 1;
  }

  /** Detaches what it transfers now, and keeps it until it is posted. Throws what `structuredClone` throws. */
  detach(): void {
    if (this.wasPosted || this.transfer.length === 0) return;
    const { values, transfer } = this;
    const moved = structuredClone({ values, transfer }, { transfer });
    this.values = moved.values;
    this.transfer = moved.transfer;
    this.#isDetached = true;
  }

  /** Ends what no worker will get, which the other ends see. A refused call keeps its own. */
  discard(): void {
    if (this.wasPosted || !this.#isDetached) return;
    for (const each of this.transfer) void end(each);
  }
}

const unused = 'the call that it was handed to never began';

async function end(value: Transferable): Promise<void> {
  try {
    if (value instanceof MessagePort) value.close();
    else if (value instanceof ReadableStream) await value.cancel(unused);
    else if (value instanceof WritableStream) await value.abort(new Error(unused));
    else if ('fd' in value) await value.close();
  } catch {
    // It has ended by itself.
  }
}
