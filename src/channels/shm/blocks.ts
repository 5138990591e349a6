// Ownership of the arena's blocks. An own block is freed when no view of it is reachable here, no `place` is
// outstanding, and every peer it was lent to has given it back. A block of another owner is given back in the
// same way, to the peer through which it came first; references that others lend meanwhile at once. So
// holders form a tree whose root is the owner: no two hold a block for each other, and the death of a peer is
// one call. Long (over 400 lines), because a block's states are changed in one table.
// Not here: memory and offsets (crates/core/src/{arena,slab}.rs), the messages (worker/protocol),
// blocks that came through an event loop that has ended (orphan-reclaim.ts).

import { CodedError } from '../../errors.js';
import { rememberShared } from '../../lib/index.js';
import { callNative, type NativeArena } from '../../native.js';
import type { Block, BlockStore } from '../types.js';
import { keepInThread, mustCount } from './outstanding.js';

/** Below this a copy in the ring is cheaper than a block with its finalizer and its message. */
const thresholdBytes = 32 * 1024;
const nudgeBytes = 8;
/** Offsets of one owner, the first member's number, and the range of each; as in crates/core/src/arena.rs. */
const rangeBytes = 2 ** 35;
const membersAt = 2 ** 17;
const memberOwners = 2 ** 8;

/** Returns the member of this number, or of the worker with it: its first number, 0 for the arena's owner. */
export function memberOf(owner: number): number {
  return owner < membersAt ? 0 : owner - (owner % memberOwners);
}

/** One block in use; the same shape for all. */
class Entry {
  readonly block: Block;
  readonly isOwn: boolean;
  /** True: passed by reference and identified by its buffer (`allocate`); false: a payload, read once. */
  isShared: boolean;
  /** The buffer of shared memory, the same for all users. */
  buffer: WeakRef<ArrayBuffer> | undefined = undefined;
  /** Buffers that are not collected yet. */
  bufferCount = 0;
  /** Outstanding `place`s and `hold`s. */
  holdCount = 0;
  /** The channel by which a foreign block came and goes back, and its references there. */
  via: ShmBlocks | undefined;
  receivedCount = 0;
  readonly lent = new Map<ShmBlocks, number>();

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

/** The blocks of one arena that this thread uses. */
export class BlockTable {
  readonly native: NativeArena;
  readonly owner: number;
  readonly #onEmptier: () => void;
  readonly #entries = new Map<number, Entry>();
  readonly #byBuffer = new WeakMap<ArrayBufferLike, Entry>();
  /** Owners that are gone but some of whose blocks are still referred to here. */
  readonly #leaving = new Set<number>();
  #isReleased = false;
  /** Called before memory is taken: they free blocks that a peer has read meanwhile. */
  readonly #reclaims = new Set<() => boolean>();

  /** Calls `onEmptier` whenever the last block may be gone. */
  constructor(native: NativeArena, owner: number, onEmptier: () => void) {
    this.native = native;
    this.owner = owner;
    this.#onEmptier = onEmptier;
  }

  /** The number of blocks in use. */
  get blockCount(): number {
    return this.#entries.size + this.#reclaims.size;
  }

  /** `reclaim` frees what it can and returns true when nothing is left for it to do. */
  addReclaim(reclaim: () => boolean): void {
    this.#reclaims.add(reclaim);
  }

  reclaim(): void {
    for (const reclaim of this.#reclaims) {
      if (reclaim()) this.#reclaims.delete(reclaim);
    }
    this.#onEmptier();
  }

  /** Copies `bytes` into a block without a count: the caller frees it. */
  placeUncounted(bytes: Uint8Array): number | undefined {
    if (this.#reclaims.size > 0) this.reclaim();
    const offset = callNative(() => this.native.place(bytes));
    return offset < 0 ? undefined : offset;
  }

  freeUncounted(offset: number): void {
    if (!this.#isReleased) callNative(() => this.native.free(offset));
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

  lend(block: Block, peer: ShmBlocks, count = 1): void {
    const entry = this.#entries.get(keyOf(block));
    if (entry !== undefined) entry.lent.set(peer, (entry.lent.get(peer) ?? 0) + count);
  }

  /** Takes numbers from a peer: a block that it does not hold, or too high a count, changes nothing more. */
  takeBack(block: Block, peer: ShmBlocks, count: number): void {
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

  returnAll(peer: ShmBlocks): void {
    for (const entry of this.#entries.values()) {
      if (entry.lent.delete(peer)) this.#settle(entry);
    }
  }

  /** `isCounted`: a reference came with the name. */
  borrow(block: Block, isShared: boolean, via: ShmBlocks, isCounted: boolean): ArrayBuffer {
    const key = keyOf(block);
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      if (block.owner === this.owner || !isCounted) {
        throw new CodedError('SEGMENT_CORRUPT', `no block at ${block.offset} is in use here`);
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
    if (isShared) entry.isShared = true; // not set for one that this thread only stands in for
    const buffer = entry.buffer?.deref() ?? this.#makeBuffer(entry);
    if (isCounted && entry.via === via) entry.receivedCount++;
    else if (isCounted) via.reportUnused(block, 1);
    return buffer;
  }

  /**
   * A finalizer in native code: a `FinalizationRegistry` is served only by collections of the whole heap, but
   * a payload that was read is garbage soon, and a scavenge frees its block.
   */
  #makeBuffer(entry: Entry): ArrayBuffer {
    const { owner, offset, sizeBytes } = entry.block;
    const key = keyOf(entry.block);
    // A scavenge frees no buffer that a WeakRef or a WeakMap refers to.
    const isCounted = entry.isShared || mustCount(sizeBytes);
    const buffer = callNative(() => this.native.view(owner, offset, sizeBytes, isCounted, key));
    entry.bufferCount++;
    if (entry.isShared) {
      entry.buffer = new WeakRef(buffer);
      this.#byBuffer.set(buffer, entry);
      rememberShared(buffer);
    } else if (isCounted) {
      // V8 scavenges when buffers of its own are made beside many young bytes; ours do not count for that.
      void new ArrayBuffer(nudgeBytes);
    } else {
      keepInThread(buffer);
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
    } else {
      entry.via?.reportUnused(entry.block, entry.receivedCount);
      const leaving = this.#leavingOf(owner);
      if (this.#leaving.has(leaving)) this.#retireWhenUnused(leaving);
    }
    this.#onEmptier();
  }

  /** Closes the arena, which has no users and no blocks any more: its memory goes with the descriptor. */
  close(): void {
    this.#isReleased = true;
    this.native.release();
  }

  /** The worker `owner` has ended: frees its part when nothing here refers to it. */
  workerEnded(owner: number, peer: ShmBlocks | undefined): void {
    if (peer !== undefined) this.returnAll(peer);
    this.#leaving.add(owner);
    this.#retireWhenUnused(owner);
  }

  /**
   * A member has ended, and references to blocks of it or its workers all go through this thread: frees their
   * parts after the last. Only in the arena's owner.
   */
  memberEnded(owner: number): void {
    this.#leaving.add(owner);
    this.#retireWhenUnused(owner);
  }

  /** `leaving` is a worker, or a member with its workers. */
  #retireWhenUnused(leaving: number): void {
    if (this.#isReleased) return;
    for (const { block } of this.#entries.values()) {
      if (this.#leavingOf(block.owner) === leaving) return;
    }
    this.#leaving.delete(leaving);
    callNative(() => {
      if (this.#isOthers(leaving)) this.native.retireMember(leaving);
      else this.native.retireOwner(leaving);
    });
    this.#onEmptier();
  }

  /** Returns the owner (a worker or member) that has to end before memory of `owner` is free. */
  #leavingOf(owner: number): number {
    return this.#isOthers(owner) ? memberOf(owner) : owner;
  }

  /** True: the number belongs to another member. */
  #isOthers(owner: number): boolean {
    return memberOf(owner) !== memberOf(this.owner);
  }

  /** Returns the foreign blocks that came through `via`. */
  blocksVia(via: ShmBlocks): Block[] {
    return [...this.#entries.values()].filter((each) => each.via === via).map(({ block }) => block);
  }

  /**
   * Makes `successor` the channel by which `block` came; `undefined`: this thread stands in for its owner.
   * Returns how many references came.
   */
  reroute(block: Block, successor: ShmBlocks | undefined): number {
    const entry = this.#entries.get(keyOf(block));
    if (entry === undefined) return 0;
    entry.via = successor;
    return entry.receivedCount;
  }

  /**
   * Adds references of `peer` to a block that it got through a member which has ended. Where the block's
   * owner has ended, too, the arena's owner stands in for it, and holds the block through no channel, because
   * the peer there might hold it through this one.
   */
  inherit(block: Block, peer: ShmBlocks, count: number): void {
    if (!(count > 0)) return;
    if (this.owner === 0 && this.#isOthers(block.owner)) this.#answerFor(block);
    this.lend(block, peer, count);
  }

  #answerFor(block: Block): void {
    const entry = this.#entries.get(keyOf(block));
    if (entry === undefined) {
      this.#entries.set(keyOf(block), new Entry(block, false, false, undefined));
      return;
    }
    entry.via?.reportUnused(block, entry.receivedCount);
    entry.via = undefined;
  }
}

function keyOf(block: Block): number {
  return block.owner * rangeBytes + block.offset;
}

function ignore(): void {}

/** Returns true when a reference goes with a sent block's name, or comes with one that is read. */
export type Counting = (block: Block, isSent: boolean) => boolean;

/** Between members every reference counts. */
export const countAll: Counting = () => true;

/**
 * Counting between a parent and its worker, which need no count for some: blocks of others came to the worker
 * from its parent, and its own it keeps until the parent gives them back.
 */
export function countOfWorker(worker: number, isParent: boolean): Counting {
  return (block, isSent) => (isSent === isParent) !== (block.owner === worker);
}

/** The blocks of one channel: those of its arena, lent to its peer and borrowed from it. */
export class ShmBlocks implements BlockStore {
  readonly thresholdBytes = thresholdBytes;
  borrowedBytes = 0;
  #onUnused: (block: Block, count: number) => void = ignore;
  readonly #table: BlockTable;
  readonly #counts: Counting | undefined;

  /** Without `counts` it belongs to no channel: what is read was packed in this thread. */
  constructor(table: BlockTable, counts?: Counting) {
    this.#table = table;
    this.#counts = counts;
  }

  handleUnused(onUnused: (block: Block, count: number) => void): void {
    this.#onUnused = onUnused;
  }

  /** Calls the handler of `handleUnused`. */
  reportUnused(block: Block, count: number): void {
    this.#onUnused(block, count);
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

  lend(block: Block): void {
    if (this.#counts === undefined) {
      throw new CodedError('OPTION_INVALID', 'there is no channel here to send a block over');
    }
    if (this.#counts(block, true)) this.#table.lend(block, this);
  }

  takeBack(block: Block, count: number): void {
    this.#table.takeBack(block, this, count);
  }

  returnAll(): void {
    this.#table.returnAll(this);
  }

  borrow(block: Block, isShared: boolean): ArrayBuffer {
    const buffer = this.#table.borrow(block, isShared, this, this.#counts?.(block, false) ?? false);
    this.borrowedBytes += block.sizeBytes;
    return buffer;
  }
}
