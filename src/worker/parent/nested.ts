// The parent's half of maps inside tasks: a worker sends chunks of its own map upwards, and its owner finds
// an idle worker for them, or refuses them. Frames are those of a parent that sends chunks to a worker, in
// the other direction. The worker's half is relay.ts.

import type { ByteReader } from '../../channels/index.js';
import { type AnyFunction, type Exporter, exportError } from '../../context/index.js';
import { ItemFailure } from '../inside/chunk.js';
import type { Link } from '../link.js';
import {
  type Chunk,
  type ChunkAnswer,
  frame,
  parseChunk,
  parseChunkName,
  runTimeUnitsPerMs,
} from '../protocol.js';

/** One chunk of a map that runs in a worker. */
export interface NestedChunk {
  /** The same object for all chunks of a map. */
  readonly mapper: AnyFunction;
  readonly chunk: Chunk;
  /** Name in messages. */
  readonly name: string;
  /** Aborted when the worker gives the chunk up, or has ended. */
  readonly signal: AbortSignal;
}

export interface NestedOwner {
  /** Rejects with an `ItemFailure`; with `POOL_BUSY` in it when no worker is idle. */
  runNested(nested: NestedChunk): Promise<ChunkAnswer>;
  /** Releases this mapper: its map is over. */
  forgetNested(mapper: AnyFunction): void;
}

export class NestedMaps {
  readonly #link: Link;
  readonly #exporter: Exporter;
  readonly #owner: NestedOwner;
  readonly #mappers = new Map<number, AnyFunction>();
  readonly #running = new Map<number, AbortController>();
  #hasEnded = false;

  constructor(link: Link, exporter: Exporter, owner: NestedOwner) {
    this.#link = link;
    this.#exporter = exporter;
    this.#owner = owner;
  }

  /** Returns false for a frame that belongs to no map in the worker. */
  receive(kind: number, slot: number, target: number, body: ByteReader): boolean {
    if (kind === frame.chunk) void this.#run(slot, target, body);
    else if (kind === frame.abort) this.#running.get(slot)?.abort();
    else if (kind === frame.forget) this.#forget(target);
    else return false;
    return true;
  }

  async #run(slot: number, target: number, body: ByteReader): Promise<void> {
    const controller = new AbortController();
    this.#running.set(slot, controller);
    try {
      const { signal } = controller;
      const answer = await this.#owner.runNested({ ...this.#read(target, body), signal });
      const ranUnits = Math.round(answer.ranMs * runTimeUnitsPerMs);
      if (!this.#hasEnded) this.#link.post(frame.result, slot, ranUnits, answer);
    } catch (thrown) {
      this.#fail(slot, thrown);
    } finally {
      this.#running.delete(slot);
    }
  }

  #read(target: number, body: ByteReader): Omit<NestedChunk, 'signal'> {
    try {
      const mapper = this.#link.importer.importFunction(target, undefined);
      this.#mappers.set(target, mapper);
      const args = this.#link.codec.read(body);
      return { mapper, chunk: parseChunk(args), name: parseChunkName(args) };
    } catch (error) {
      throw new ItemFailure(-1, error);
    }
  }

  #fail(slot: number, thrown: unknown): void {
    if (this.#hasEnded) return;
    const { at, error } = thrown instanceof ItemFailure ? thrown : new ItemFailure(-1, thrown);
    if (at >= 0) this.#link.post(frame.failedAt, slot, at, undefined);
    this.#link.postSnapshot(frame.error, slot, 0, exportError(this.#exporter, error));
  }

  #forget(id: number): void {
    this.#link.importer.forget(id);
    const mapper = this.#mappers.get(id);
    this.#mappers.delete(id);
    if (mapper !== undefined) this.#owner.forgetNested(mapper);
  }

  /** Ends all its maps: the worker has ended. */
  end(): void {
    this.#hasEnded = true;
    for (const controller of this.#running.values()) controller.abort();
    for (const mapper of this.#mappers.values()) this.#owner.forgetNested(mapper);
    this.#mappers.clear();
  }
}
