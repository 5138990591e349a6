// The transfer list of a call (option `transfer`): checks that it is part of the call, and detaches it
// here. Buffers go to threads as they are, and to processes as copies; either way this side has lost them,
// so a program means the same with both.

import { isArrayBuffer } from 'node:util/types';
import threads, { type Transferable } from 'node:worker_threads';
import { isHandle } from '../../context/index.js';
import { CodedError } from '../../errors.js';
import { isDetached, type Parcel } from '../../lib/index.js';
import { untransferable } from '../both/parcels.js';

export class Moving {
  readonly #wanted: ReadonlyMap<object, Transferable>;
  readonly #met = new Set<object>();

  /** Throws `OPTION_INVALID` for values that can no longer be transferred. */
  constructor(transfer: readonly Transferable[]) {
    this.#wanted = new Map(transfer.map((each) => [each, each]));
    for (const [index, each] of transfer.entries()) checkTransferable(each, index);
  }

  /** Returns `value` or its memory, when it is to be transferred. */
  find(value: object): Transferable | undefined {
    const found = this.#wanted.get(ArrayBuffer.isView(value) ? value.buffer : value);
    if (found !== undefined) this.#met.add(found);
    return found;
  }

  /** Throws `OPTION_INVALID` when a listed value is not part of the call. */
  check(): void {
    let index = 0;
    for (const each of this.#wanted.keys()) {
      if (!this.#met.has(each))
        throw refused(index, 'is not part of the call', 'pass it, or leave it out');
      index += 1;
    }
  }

  /** Detaches everything that is still here. Throws `TRANSFER_UNSUPPORTED`. */
  detach(parcels: readonly Parcel[]): void {
    try {
      for (const parcel of parcels) parcel.detach();
      const left = [...this.#wanted.values()].filter(isMemory).filter((each) => !isDetached(each));
      structuredClone(undefined, { transfer: left });
    } catch (error) {
      throw untransferable(error);
    }
  }
}

/** Always false in Node 20, which copies such memory. */
function isUntransferable(memory: ArrayBuffer): boolean {
  const isMarked: unknown = Reflect.get(threads, 'isMarkedAsUntransferable');
  return typeof isMarked === 'function' && isMarked(memory) === true;
}

function isMemory(value: unknown): value is ArrayBuffer {
  return isArrayBuffer(value);
}

/** Throws `OPTION_INVALID` for values that threads cannot hand over, or no longer. */
function checkTransferable(value: Transferable, index: number): void {
  if (isMemory(value)) {
    if (isDetached(value))
      throw refused(index, 'is detached already', 'pass what has its memory now');
    if (isUntransferable(value)) {
      const why = 'is marked as untransferable, as memory is that small Buffers share';
      throw refused(index, why, 'transfer a copy, or leave it out: it is copied then');
    }
  } else if (!isHandle(value)) {
    const wanted = 'put ArrayBuffers, MessagePorts, unread streams and FileHandles there';
    throw refused(index, 'cannot be transferred', wanted);
  }
}

function refused(index: number, what: string, wayOut: string): CodedError {
  return new CodedError('OPTION_INVALID', `transfer[${index}] ${what}: ${wayOut}`);
}
