// The worker's half of maps inside tasks: offers chunks of a map that runs here to the parent, which may
// have an idle worker for them. The offering worker must be ready to run the chunk itself: the parent may
// refuse it, and no worker ever waits for another one to become free. So maps in maps cannot deadlock,
// however deep. The parent's half is nested.ts.

import type { BlockStore, ByteReader } from '../../channels/index.js';
import type { AnyFunction, Exporter, FunctionSnapshot } from '../../context/receiving.js';
import { CodedError } from '../../errors.js';
import { unwatchAbort, watchAbort } from '../../lib/index.js';
import { blocksOf } from '../both/buffers.js';
import type { Call } from '../both/call.js';
import { type Link, rest } from '../link.js';
import { type Chunk, type ChunkAnswer, chunkArgs, frame, parseChunkAnswer } from '../protocol.js';
import { ItemFailure } from './chunk.js';

interface Waiting {
  readonly call: Call;
  readonly resolve: (answer: ChunkAnswer) => void;
  readonly reject: (failure: ItemFailure) => void;
  readonly settled: () => void;
}

/** A mapper of this worker that its parent has. */
export interface RelayedFunction {
  /**
   * `name` is for messages. Rejects with an `ItemFailure`: `at` -1 and `POOL_BUSY` when no worker is idle;
   * then the chunk was not begun.
   */
  run(chunk: Chunk, name: string, signal: AbortSignal | undefined): Promise<ChunkAnswer>;
  /** No `run` may follow. */
  close(): void;
}

export class Relay {
  readonly #link: Link;
  readonly #exporter: Exporter;
  readonly #blocks: BlockStore | undefined;
  readonly #waiting: (Waiting | undefined)[] = [];

  constructor(link: Link, exporter: Exporter, blocks: BlockStore | undefined) {
    this.#link = link;
    this.#exporter = exporter;
    this.#blocks = blocks;
  }

  /** True: memory of `shared()` travels there and back without a copy. */
  get sharesMemory(): boolean {
    return this.#blocks !== undefined;
  }

  /** Throws `TRANSFER_…`. */
  open(mapper: AnyFunction): RelayedFunction {
    const plain = this.#exporter.exportFunction(mapper);
    const snapshot = this.#exporter.pin(plain);
    const blocks = blocksOf(snapshot.buffers);
    for (const block of blocks) this.#blocks?.hold(block);
    return {
      run: (chunk, name, signal) => this.#run(snapshot, [...chunkArgs(chunk), name], signal),
      close: () => {
        for (const block of blocks) this.#blocks?.release(block);
        if (snapshot === plain) return;
        this.#link.forget(snapshot.id);
        this.#exporter.unpin(snapshot.id);
      },
    };
  }

  #run(
    snapshot: FunctionSnapshot,
    args: unknown[],
    signal: AbortSignal | undefined,
  ): Promise<ChunkAnswer> {
    const free = this.#waiting.indexOf(undefined);
    const slot = free < 0 ? this.#waiting.length : free;
    return new Promise((resolve, reject) => {
      const packed = this.#link.codec.pack(args);
      const call: Call = { snapshot, args, packed, isChunk: true, failedAt: -1 };
      const outcome = this.#link.trySendCall(slot, call);
      this.#link.codec.release(packed); // lent blocks stay lent
      if (outcome !== 'sent') throw new ItemFailure(-1, busy());
      const abort = (): void => this.#link.post(frame.abort, slot, 0, undefined);
      const settled = (): void => {
        if (signal !== undefined) unwatchAbort(signal, abort);
      };
      this.#waiting[slot] = { call, resolve, reject, settled };
      if (signal !== undefined) watchAbort(signal, abort);
    });
  }

  /** Returns false for a frame that is no answer to this. */
  receive(kind: number, slot: number, target: number, body: ByteReader): boolean {
    const waiting = this.#waiting[slot];
    if (kind === frame.failedAt) {
      if (waiting !== undefined) waiting.call.failedAt = target;
    } else if (kind === frame.result || kind === frame.error) {
      this.#waiting[slot] = undefined;
      if (waiting !== undefined) this.#settle(waiting, kind === frame.error, body);
    } else return false;
    return true;
  }

  #settle({ call, resolve, reject, settled }: Waiting, isError: boolean, body: ByteReader): void {
    settled();
    try {
      if (!isError) resolve(parseChunkAnswer(this.#link.codec.read(body)));
      else reject(new ItemFailure(call.failedAt, this.#link.importer.importValue(rest(body))));
    } catch (error) {
      reject(new ItemFailure(-1, error));
    }
  }
}

function busy(): CodedError {
  return new CodedError('POOL_BUSY', 'the channel to the parent is full: run the chunk here');
}

let relay: Relay | undefined;

/** Sets the relay of this worker; for its entry. */
export function relayTo(made: Relay): void {
  relay = made;
}

/** Returns the relay for chunks of a map in this worker; `undefined` outside of workers. */
export function parentRelay(): Relay | undefined {
  return relay;
}
