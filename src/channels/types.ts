// The contract of a channel: a two-way path for frames between this thread and one worker. Three kinds keep
// it (shm, socket, memory); test/conformance/channel.ts runs on each of them.
// Not here: what a frame's body means (codec/), who starts the other side (worker/).

import type { Duplex } from 'node:stream';
import type { MessagePort } from 'node:worker_threads';
import type { ByteReader, ByteWriter } from './bytes.js';

export type ChannelKind = 'shm' | 'socket' | 'memory';

/** Writes `value` as the body of a frame; false when this writer cannot carry it (see codec/). */
export type BodyWriter<T> = (writer: ByteWriter, value: T) => boolean;

/**
 * Outcome of a send. `sent`: whole, in order; `full`: nothing was written, `onDrain` follows; `refused`: the
 * body writer returned false, nothing was written; `closed`: nothing was written.
 */
export type SendOutcome = 'sent' | 'full' | 'refused' | 'closed';

/** The reader is valid only during the call; `kind`, `task`, `target` are int32. */
export type FrameListener = (kind: number, task: number, target: number, body: ByteReader) => void;

/** Handlers of a channel's events. */
export interface ChannelHandlers {
  readonly onFrame: FrameListener;
  /** Called when there is room again after a `full`. */
  readonly onDrain: () => void;
  /** Called once, when nothing more will arrive; `error` is set when it was not an orderly close. */
  readonly onClose: (error: Error | undefined) => void;
}

/**
 * The contract. Each number is a test of the conformance suite.
 *
 * 1. Frames arrive whole, once, in the order sent.
 * 2. What was sent before `close()` arrives before the peer's `onClose`.
 * 3. `trySend` never waits. After `full`, `onDrain` is called once there is room again.
 * 4. A frame may be as large as memory allows; a large one does not reorder its neighbours.
 * 5. When the peer dies, `onClose` is called once, after every frame that it had sent whole.
 * 6. `close()` and `destroy()` may be called at any time and any number of times. After `destroy()`
 *    no listener is called again; `close()` delivers what was sent and still receives until the peer
 *    has closed too.
 * 7. A malformed byte stream ends the channel: `onClose` gets `CHANNEL_FRAME_CORRUPT` or
 *    `SEGMENT_CORRUPT`; the process goes on.
 * 8. No listener runs inside `trySend`; listeners run on this thread's event loop.
 * 9. A listener that throws does not lose or repeat the frames behind it.
 * 10. An open channel keeps the event loop alive only between `ref()` and `unref()`; it starts `unref`.
 * 11. It counts the bytes of frames, whatever became of the channel.
 * 12. `handle` replaces the handlers that it gets and keeps the others; an event without one is dropped.
 * 13. `poll`, where there is one, delivers frames in its call, in the same order as they would come otherwise.
 */
export interface Channel {
  readonly kind: ChannelKind;
  /** Bytes of the frames so far, with headers, without the blocks that they refer to. */
  readonly sentBytes: number;
  readonly receivedBytes: number;
  /** Replaces the handlers that are given, and keeps the others. An event without a handler is dropped. */
  handle(handlers: Partial<ChannelHandlers>): void;
  trySend<T>(
    kind: number,
    task: number,
    target: number,
    write: BodyWriter<T>,
    value: T,
  ): SendOutcome;
  ref(): void;
  unref(): void;
  close(): void;
  destroy(): void;
  /**
   * Sends what waits in this process, as far as the system takes it at once, and delivers what has arrived, in this
   * call instead of a later turn. Missing where that is impossible. Not to be called in a listener.
   */
  readonly poll?: (() => void) | undefined;
}

/**
 * Words that both ends can change at once, one per task in flight, to reclaim a task that was sent ahead.
 * Only channels over shared memory have them. A slot is an index into `[0, slotCount)`.
 */
export interface Claims {
  readonly slotCount: number;
  /** Sender, before the frame is sent: the slot is open. */
  open(slot: number): void;
  /** Either end: true for exactly one of the two ends that try. */
  tryClaim(slot: number): boolean;
  /** Sender: true while neither end has claimed it. */
  isOpen(slot: number): boolean;
  /** Sender: as `tryClaim`, and the receiver answers the task without beginning it. */
  tryCancel(slot: number): boolean;
  /** Receiver, after it could not claim the slot: the sender waits for an answer. */
  isCancelled(slot: number): boolean;
  /** The definition whose modules the receiver loads, written by it; `undefined`: none. */
  loading: number | undefined;
}

/** A piece of shared memory, named by numbers that mean the same in every process. */
export interface Block {
  /** The part of the arena: 0 is that of the process that made it, others have numbers of their own. */
  readonly owner: number;
  /** Offset inside that part, in bytes; a multiple of the page size. */
  readonly offset: number;
  readonly sizeBytes: number;
}

/**
 * Shared memory for payloads, as one channel uses it. Only its owner frees a block, when nothing holds it any
 * more. The owner holds it while it may still send it. A peer holds it from the moment a reference was sent
 * to it until its `release` arrives.
 */
export interface BlockStore {
  /** Smallest payload that is worth a block, in bytes. */
  readonly thresholdBytes: number;
  /**
   * Returns a block with the bytes of `view`, held once for the caller. Nothing is copied when `view` lies in
   * a block of `allocate`, or one `borrow`-ed as shared. Returns `undefined` when no shared memory is left:
   * send the bytes inline.
   */
  place(view: Uint8Array): Block | undefined;
  /** Returns memory that passes without a copy, in both directions; freed when no view is reachable. */
  allocate(sizeBytes: number): ArrayBuffer;
  /** Returns the block of such memory, without a hold; `undefined` for any other. */
  sharedBlock(buffer: ArrayBufferLike): Block | undefined;
  /** Holds a block that is in use once more for the caller. */
  hold(block: Block): void;
  /** Gives up the hold of `place` or `hold`. */
  release(block: Block): void;
  /**
   * Counts a reference to `block` that was sent to the peer. Throws `OPTION_INVALID` in a store without a
   * channel.
   */
  lend(block: Block): void;
  /** The peer holds `count` references less; or, with `returnAll`, the peer is gone. */
  takeBack(block: Block, count: number): void;
  returnAll(): void;
  /**
   * Returns the memory of a block that the peer lent. When it is not held here any more, the handler of
   * `handleUnused` is called with the number of references received, to be sent to the peer.
   */
  borrow(block: Block, isShared: boolean): ArrayBuffer;
  /** Bytes borrowed so far. */
  readonly borrowedBytes: number;
  /** Sets the handler of `borrow`. */
  handleUnused(onUnused: (block: Block, count: number) => void): void;
}

/** A step that a member has done for one that has ended (channels/shm/orphan-reclaim.ts). */
export type RefTransferStep = 'transferred' | 'settled';

/** Handlers of what is to be sent to the peer, in order. */
export interface RefTransferHandlers {
  /** Called with this thread's references to a block. */
  readonly onInherit: (block: Block, count: number) => void;
  /** Called with each step of this thread for `member`. */
  readonly onStep: (member: number, step: RefTransferStep) => void;
}

/**
 * Transfer of a dead member's references to blocks, between two other members (event loops of one arena).
 * Those references are dropped only when no holder of a block needs them that got it through the dead
 * member. Absent on a channel to a worker.
 */
export interface RefTransfer {
  /** Sets the handlers, before anything can arrive. */
  handle(handlers: RefTransferHandlers): void;
  /** Both are called with what the peer has sent. */
  inherit(block: Block, count: number): void;
  receiveStep(member: number, step: RefTransferStep): void;
  /** Nothing more will be read from the channel. */
  finishReading(): void;
}

/** The worker's way to its end of the channel: plain data, sent as JSON or as `workerData`. */
export type ChannelTicket =
  | { readonly kind: 'socket' }
  | { readonly kind: 'memory'; readonly port: MessagePort }
  | { readonly kind: 'shm'; readonly [field: string]: unknown };

/**
 * The parent's half before the worker runs. Start the worker with `ticket`, with `stdio` at descriptor 3
 * and up (process) or `transfer` (thread), then call `open`; `discard` when the start failed.
 */
export interface ChannelOffer {
  readonly ticket: ChannelTicket;
  readonly stdio: readonly (number | 'pipe')[];
  readonly transfer: readonly MessagePort[];
  /** `pipe` is what the parent got for a `'pipe'` entry of `stdio`. */
  open(pipe: Duplex | undefined): ChannelEnd;
  discard(): void;
}

/** A channel with the extras of shared memory; all are `undefined` on `socket` and `memory`. */
export interface ChannelEnd {
  readonly channel: Channel;
  readonly claims: Claims | undefined;
  readonly blocks: BlockStore | undefined;
  readonly refTransfer?: RefTransfer | undefined;
  /** Returns true once the peer has opened its end, which a peer that is not trusted may deny; only of shm. */
  readonly hasPeerOpened?: () => boolean;
  /** To be called when the peer's process has ended: reads what it sent, then calls `onClose`. */
  readonly peerExited?: () => void;
}
