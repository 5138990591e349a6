// Who holds which block of the arena. An own block is freed when nobody holds it: no view of it is
// reachable here, no `place` is outstanding, and every peer it was lent to has given it back. A block
// of another owner is reported to its owner when the same is true here. So nobody waits for anybody,
// and the death of a peer is one call (`returnAll`).
// Not here: memory and offsets (crates/core/src/{arena,slab}.rs), the messages (host/protocol).

import { CodedError } from '../../errors.js';
import { callNative, type NativeArena } from '../../native.js';
import type { Block, BlockStore } from '../types.js';

/** Below this a copy in the ring is cheaper than a block with its finalizer and its message. */
const thresholdBytes = 32 * 1024;
const nudgeBytes = 8;
/** Offsets of one owner; as in crates/core/src/arena.rs. */
const rangeBytes = 2 ** 35;

/** One block that somebody holds; the same shape for all. */
class Entry {
  readonly block: Block;
  readonly isOwn: boolean;
  /** Passed by reference and known by its buffer (`allocate`), or a payload that is read once. */
  readonly isShared: boolean;
  /** The buffer of shared memory: one for all who ask. */
  buffer: WeakRef<ArrayBuffer> | undefined = undefined;
  /** Buffers that are not collected yet. */
  bufferCount = 0;
  /** Outstanding `place`s and `hold`s. */
  holdCount = 0;
  /** References received from the owner, when that is another process. */
  receivedCount = 0;
  readonly lent = new Map<number, number>();
  /** Through whom a foreign block came and goes back. */
  readonly via: ShmBlocks | undefined;

  constructor(block: Block, isOwn: boolean, isShared: boolean, via: ShmBlocks | undefined) {
    this.block = block;
    this.isOwn = isOwn;
    this.isShared = isShared;
    this.via = via;
  }

  get isHeld(): boolean {
    return this.bufferCount > 0 || this.holdCount > 0 || this.lent.size > 0;
  }
}

/** The blocks of one arena that this thread knows. */
export class BlockTable {
  readonly native: NativeArena;
  readonly owner: number;
  readonly #onEmptier: () => void;
  readonly #entries = new Map<number, Entry>();
  readonly #byBuffer = new WeakMap<ArrayBufferLike, Entry>();
  /** Owners that are gone but some of whose blocks are still referred to here. */
  readonly #leaving = new Set<number>();
  #isReleased = false;
  /** Asked before memory is taken: blocks that a peer has read meanwhile. */
  readonly #reclaims = new Set<() => boolean>();

  /** `onEmptier` is called whenever the last block may have gone. */
  constructor(native: NativeArena, owner: number, onEmptier: () => void) {
    this.native = native;
    this.owner = owner;
    this.#onEmptier = onEmptier;
  }

  /** Blocks that somebody holds. */
  get blockCount(): number {
    return this.#entries.size + this.#reclaims.size;
  }

  /** `reclaim` frees what it can and says whether nothing is left for it to do. */
  addReclaim(reclaim: () => boolean): void {
    this.#reclaims.add(reclaim);
  }

  reclaim(): void {
    for (const reclaim of this.#reclaims) {
      if (reclaim()) this.#reclaims.delete(reclaim);
    }
    this.#onEmptier();
  }

  /** A copy of `bytes` that nobody counts: the caller frees the offset. */
  placeUncounted(bytes: Uint8Array): number | undefined {
    if (this.#reclaims.size > 0) this.reclaim();
    const offset = callNative(() => this.native.place(bytes));
    return offset < 0 ? undefined : offset;
  }

  place(view: Uint8Array): Block | undefined {
    const known = this.#byBuffer.get(view.buffer);
    if (known !== undefined) {
      known.holdCount++;
      return known.block;
    }
    const offset = this.placeUncounted(view);
    if (offset === undefined) return undefined;
    const block: Block = { owner: this.owner, offset, sizeBytes: view.byteLength };
    const entry = new Entry(block, true, false, undefined);
    entry.holdCount = 1;
    this.#entries.set(keyOf(block), entry);
    return block;
  }

  allocate(sizeBytes: number): ArrayBuffer {
    if (this.#reclaims.size > 0) this.reclaim();
    const offset = callNative(() => this.native.allocate(sizeBytes));
    if (offset < 0) {
      throw new CodedError(
        'SHARED_MEMORY_FULL',
        `no shared memory is left for ${sizeBytes} bytes: use less of it at a time`,
      );
    }
    const block: Block = { owner: this.owner, offset, sizeBytes };
    const entry = new Entry(block, true, true, undefined);
    this.#entries.set(keyOf(block), entry);
    return this.#makeBuffer(entry);
  }

  sharedBlock(buffer: ArrayBufferLike): Block | undefined {
    return this.#byBuffer.get(buffer)?.block;
  }

  hold(block: Block): void {
    const entry = this.#entries.get(keyOf(block));
    if (entry !== undefined) entry.holdCount++;
  }

  release(block: Block): void {
    const entry = this.#entries.get(keyOf(block));
    if (entry === undefined || entry.holdCount === 0) return;
    entry.holdCount--;
    this.#settle(entry);
  }

  lend(block: Block, peer: number): void {
    // The owner itself needs no permission to keep its block.
    if (block.owner === peer) return;
    const entry = this.#entries.get(keyOf(block));
    if (entry !== undefined) entry.lent.set(peer, (entry.lent.get(peer) ?? 0) + 1);
  }

  /** Numbers from a peer: a block that was never lent to it, or too high a count, changes nothing more. */
  takeBack(block: Block, peer: number, count: number): void {
    const entry = this.#entries.get(keyOf(block));
    const lentCount = entry?.lent.get(peer);
    if (entry === undefined || lentCount === undefined || !(count > 0)) return;
    if (count < lentCount) {
      entry.lent.set(peer, lentCount - count);
      return;
    }
    entry.lent.delete(peer);
    this.#settle(entry);
  }

  returnAll(peer: number): void {
    for (const entry of this.#entries.values()) {
      if (entry.lent.delete(peer)) this.#settle(entry);
    }
  }

  borrow(block: Block, isShared: boolean, via: ShmBlocks): ArrayBuffer {
    const key = keyOf(block);
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      if (block.owner === this.owner) {
        throw new CodedError('SEGMENT_CORRUPT', `no own block at ${block.offset} is in use`);
      }
      entry = new Entry(block, false, isShared, via);
      const buffer = this.#makeBuffer(entry);
      this.#entries.set(key, entry);
      entry.receivedCount = 1;
      return buffer;
    }
    if (entry.block.sizeBytes !== block.sizeBytes) {
      throw new CodedError('SEGMENT_CORRUPT', `a block of ${block.sizeBytes} bytes is none`);
    }
    if (!entry.isOwn) entry.receivedCount++;
    return entry.buffer?.deref() ?? this.#makeBuffer(entry);
  }

  /**
   * A finalizer in native code and no `FinalizationRegistry`, which only a collection of the whole
   * heap serves: a payload that was read is garbage soon, and a scavenge frees its block.
   */
  #makeBuffer(entry: Entry): ArrayBuffer {
    const { owner, offset, sizeBytes } = entry.block;
    const key = keyOf(entry.block);
    const buffer = callNative(() => this.native.view(owner, offset, sizeBytes, key));
    entry.bufferCount++;
    if (entry.isShared) {
      entry.buffer = new WeakRef(buffer);
      this.#byBuffer.set(buffer, entry);
    } else {
      // V8 scavenges when buffers of its own are made beside many young bytes; ours it does not ask.
      void new ArrayBuffer(nudgeBytes);
    }
    return buffer;
  }

  /** Native code lists the buffers that were collected. */
  onCollected(): void {
    for (const key of this.native.takeCollected()) {
      const entry = this.#entries.get(key);
      if (entry === undefined) continue;
      entry.bufferCount--;
      this.#settle(entry);
    }
  }

  #settle(entry: Entry): void {
    if (this.#isReleased || entry.isHeld || !this.#entries.delete(keyOf(entry.block))) return;
    const { owner, offset } = entry.block;
    if (entry.isOwn) {
      callNative(() => this.native.free(offset));
    } else if (this.#leaving.has(owner)) {
      this.#retireWhenUnused(owner);
    } else {
      entry.via?.onUnused(entry.block, entry.receivedCount);
    }
    this.#onEmptier();
  }

  /** Nobody uses the arena any more, and no block is held: its memory goes with the descriptor. */
  close(): void {
    this.#isReleased = true;
    this.native.release();
  }

  /** The process of `owner` has ended: frees its part when nothing here refers to it. */
  ownerEnded(owner: number): void {
    this.returnAll(owner);
    this.#leaving.add(owner);
    this.#retireWhenUnused(owner);
  }

  #retireWhenUnused(owner: number): void {
    if (this.#isReleased) return;
    for (const entry of this.#entries.values()) {
      if (entry.block.owner === owner) return;
    }
    this.#leaving.delete(owner);
    callNative(() => this.native.retireOwner(owner));
  }
}

function keyOf(block: Block): number {
  return block.owner * rangeBytes + block.offset;
}

function ignore(): void {}

/** The block store of one channel: the table of its arena, and where blocks of its peer go back. */
export class ShmBlocks implements BlockStore {
  readonly thresholdBytes = thresholdBytes;
  onUnused: (block: Block, count: number) => void = ignore;
  readonly #table: BlockTable;

  constructor(table: BlockTable) {
    this.#table = table;
  }

  place(view: Uint8Array): Block | undefined {
    return this.#table.place(view);
  }

  allocate(sizeBytes: number): ArrayBuffer {
    return this.#table.allocate(sizeBytes);
  }

  sharedBlock(buffer: ArrayBufferLike): Block | undefined {
    return this.#table.sharedBlock(buffer);
  }

  hold(block: Block): void {
    this.#table.hold(block);
  }

  release(block: Block): void {
    this.#table.release(block);
  }

  lend(block: Block, peer: number): void {
    this.#table.lend(block, peer);
  }

  takeBack(block: Block, peer: number, count: number): void {
    this.#table.takeBack(block, peer, count);
  }

  returnAll(peer: number): void {
    this.#table.returnAll(peer);
  }

  borrow(block: Block, isShared: boolean): ArrayBuffer {
    return this.#table.borrow(block, isShared, this);
  }
}
