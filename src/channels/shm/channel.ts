// A channel over a segment: writes one ring, reads the other, wakes the peer only when it sleeps.
// States: open → closed (sends no more, still reads) → gone. Each side publishes its state in a word of the
// segment. `docs/design/shared-memory.md` states the protocol.
// Not here: ring format (ring-writer, ring-reader), sleeping (native), blocks for payloads (blocks), large bodies
// (spill, pieces), a peer that is not trusted (guard).

import { CodedError } from '../../errors.js';
import { errorOf, setImmediate } from '../../lib/index.js';
import type { NativeSegment } from '../../native.js';
import type { ByteReader } from '../bytes.js';
import type { BodyWriter, Channel, ChannelHandlers, FrameListener, SendOutcome } from '../types.js';
import type { EventLoop } from './event-loop.js';
import { Guard } from './guard.js';
import type { LargeBodies } from './large-bodies.js';
import {
  endWordAt,
  parentWords,
  replyRing,
  requestRing,
  type SegmentMemory,
  type SideWords,
  sideState,
  workerWords,
} from './layout.js';
import { RingReader } from './ring-reader.js';
import { RingWriter } from './ring-writer.js';

const framesPerPump = 256;

function ignore(): void {}

/** The parts of a new channel; the ends differ only in the direction of the two rings. */
export interface ShmChannelParts {
  readonly segment: NativeSegment;
  readonly memory: SegmentMemory;
  readonly loop: EventLoop;
  /** The number of this end in the native loop. */
  readonly end: number;
  /** The `endWords` of that end. */
  readonly endWords: Int32Array;
  readonly isParent: boolean;
  /** True: the peer is not trusted. */
  readonly isGuarded: boolean;
  /** True: the peer has ended when it has closed the bell, which is this channel's alone. */
  readonly endsWithBell: boolean;
  /** Carries bodies that are too large for the ring. */
  readonly large: LargeBodies;
  /** Called once, when this end has given everything back and the peer has ended. */
  readonly onPeerEnded: () => void;
}

export class ShmChannel implements Channel {
  readonly kind = 'shm';
  #handlers: ChannelHandlers = { onFrame: ignore, onDrain: ignore, onClose: ignore };
  readonly #words: Int32Array;
  readonly #writer: RingWriter;
  readonly #reader: RingReader;
  readonly #peerAsleepAt: number;
  readonly #at: SideWords;
  readonly #loop: EventLoop;
  readonly #end: number;
  readonly #refs: Int32Array;
  readonly #large: LargeBodies;
  readonly #guard: Guard | undefined;
  readonly #endsWithBell: boolean;
  readonly #onPeerEnded: () => void;
  #isSending = true;
  /** True while frames may be written: it sends, and no large body waits for room. */
  #mayWrite = true;
  /** True while a body writer runs. */
  #isWriting = false;
  /** True: nothing more will arrive, and `onClose` was called. */
  #isPeerDone = false;
  #isAttached = true;
  #wantsRoom = false;
  /** True: `full` was returned, and `onDrain` has not followed. */
  #owesDrain = false;
  #hasPeerExited = false;

  constructor(parts: ShmChannelParts) {
    const { segment, memory, isParent, endWords } = parts;
    const request = requestRing(segment.requestAt, segment.ringBytes);
    const reply = replyRing(segment.replyAt, segment.ringBytes);
    this.#words = memory.words;
    const [outgoing, incoming] = isParent ? [request, reply] : [reply, request];
    this.#writer = new RingWriter(memory, outgoing);
    this.#reader = new RingReader(memory, incoming, parts.isGuarded);
    this.#at = isParent ? parentWords : workerWords;
    this.#peerAsleepAt = this.#at.peerAsleep;
    this.#loop = parts.loop;
    this.#end = parts.end;
    this.#refs = endWords;
    this.#large = parts.large;
    this.#guard = parts.isGuarded ? new Guard(memory.words, endWords, this.#at) : undefined;
    this.#endsWithBell = parts.endsWithBell;
    this.#onPeerEnded = parts.onPeerEnded;
    Atomics.store(this.#words, this.#at.ownState, sideState.open);
    this.#wakePeer();
    this.#loop.add(this);
  }

  get hasPeerOpened(): boolean {
    return Atomics.load(this.#words, this.#at.peerState) !== sideState.absent;
  }

  get sentBytes(): number {
    return this.#writer.writtenBytes + this.#large.writtenBytes;
  }

  get receivedBytes(): number {
    return this.#reader.readBytes + this.#large.readBytes;
  }

  trySend<T>(
    kind: number,
    task: number,
    target: number,
    write: BodyWriter<T>,
    value: T,
  ): SendOutcome {
    if (!this.#mayWrite) return this.#refuse();
    if (this.#isWriting) return this.#refuseNested();
    this.#isWriting = true;
    try {
      const outcome = this.#writer.write(kind, task, target, write, value, 0);
      if (outcome === 'sent') {
        if (Atomics.load(this.#words, this.#peerAsleepAt) !== 0) this.#wakePeer();
        return outcome;
      }
      if (outcome === 'refused') return outcome;
      return this.#trySendSlowly(outcome, kind, task, target, write, value);
    } finally {
      this.#isWriting = false;
    }
  }

  #refuse(): 'closed' | 'full' {
    if (!this.#isSending) return 'closed';
    this.#owesDrain = true; // behind the large body that waits
    return 'full';
  }

  /** Refuses a body writer that sends while its own frame is half written. */
  #refuseNested(): 'full' {
    setImmediate(() => {
      if (this.#isAttached) this.#handlers.onDrain();
    });
    return 'full';
  }

  #trySendSlowly<T>(
    first: 'full' | 'tooLarge' | 'corrupt',
    kind: number,
    task: number,
    target: number,
    write: BodyWriter<T>,
    value: T,
  ): SendOutcome {
    let outcome: SendOutcome | 'tooLarge' | 'corrupt' = first;
    for (;;) {
      if (outcome === 'tooLarge') {
        outcome = this.#large.write(this.#writer, kind, task, target, write, value);
      }
      if (outcome === 'corrupt') {
        this.#failLater('the head of the outgoing ring');
        return 'closed';
      }
      if (outcome !== 'full') break;
      if (Atomics.load(this.#words, this.#at.peerState) === sideState.gone) return 'closed';
      if (this.#writer.wantRoom()) {
        this.#wantsRoom = true;
        this.#owesDrain = true;
        return 'full';
      }
      this.#roomIsThere();
      outcome = this.#writer.write(kind, task, target, write, value, 0);
    }
    if (outcome !== 'sent') return outcome;
    if (this.#large.isWaiting) this.#resumeLarge();
    this.#wakePeer();
    return outcome;
  }

  /** Writes as much as has room of the large body that waits; the rest follows when the peer has made room. */
  #resumeLarge(): void {
    for (;;) {
      const outcome = this.#large.resume(this.#writer);
      if (outcome === 'corrupt') this.#failLater('the head of the outgoing ring');
      this.#mayWrite = this.#isSending && outcome === 'sent';
      if (outcome !== 'full' || Atomics.load(this.#words, this.#at.peerState) === sideState.gone) {
        return;
      }
      if (this.#writer.wantRoom()) {
        this.#wantsRoom = true;
        return;
      }
      this.#roomIsThere();
    }
  }

  /** Answers an earlier request itself: a request that was withdrawn has taken its place in the segment. */
  #roomIsThere(): void {
    if (!this.#wantsRoom) return;
    this.#wantsRoom = false;
    setImmediate(() => {
      // Else a later request is open, and its answer serves both.
      if (this.#isAttached && !this.#wantsRoom) this.#takeRoom();
    });
  }

  #takeRoom(): void {
    this.#wantsRoom = false;
    if (this.#large.isWaiting) {
      this.#resumeLarge();
      this.#wakePeer();
      if (this.#large.isWaiting) return;
      if (!this.#isSending) this.#publishClose();
    }
    if (!this.#owesDrain) return;
    this.#owesDrain = false;
    if (this.#isSending) this.#handlers.onDrain();
  }

  readonly poll = (): void => this.pump();

  /** Called by the loop: delivers what is there, within limits. */
  pump(): void {
    if (this.#isPeerDone || !this.#isAttached) return;
    // Read before the ring: what the peer sent before it closed is then in the ring.
    const peerState = Atomics.load(this.#words, this.#at.peerState);
    const outcome = this.#reader.drain(this.#handlers.onFrame, this.#onLarge, framesPerPump);
    if (!this.#isAttached) return;
    if (outcome === 'corrupt') {
      this.#fail(`a cursor or size of the incoming ring is ${this.#reader.corruptValue}`);
      return;
    }
    if (this.#reader.makeRoom()) this.#wakePeer();
    const hasRoom = this.#writer.takeRoom();
    const guard = this.#guard;
    if (guard !== undefined) {
      const isForgedRoom = hasRoom && !(this.#wantsRoom && this.#writer.hasMadeRoom());
      const forgery = isForgedRoom
        ? 'room that was not made'
        : outcome === 'empty' &&
          guard.findForgery(this.#reader.readFrames, this.#writer.roomEvents);
      if (typeof forgery === 'string') {
        this.#fail(forgery);
        return;
      }
    }
    if (hasRoom && this.#wantsRoom) this.#takeRoom();
    const isPeerClosed = peerState === sideState.closed || peerState === sideState.gone;
    if (outcome === 'empty' && (isPeerClosed || this.#isPeerLost) && this.#isAttached) {
      this.#finishReceiving(isPeerClosed, peerState === sideState.gone);
    }
  }

  readonly #onLarge: FrameListener = (kind, task, target, body: ByteReader) => {
    let whole: ByteReader | undefined;
    try {
      whole = this.#large.read(kind, task, target, body);
    } catch (error) {
      this.#failWith(errorOf(error));
      return;
    }
    if (whole !== undefined) this.#handlers.onFrame(kind, task, target, whole);
  };

  get #isPeerLost(): boolean {
    const isBellGone = this.#endsWithBell && this.#refs[endWordAt.isBellGone] !== 0;
    return this.#hasPeerExited || isBellGone;
  }

  #finishReceiving(isOrderly: boolean, isGone: boolean): void {
    if (this.#isPeerDone) return;
    this.#isPeerDone = true;
    if (isGone || this.#isPeerLost) this.#stopSending();
    const error = isOrderly
      ? undefined
      : new CodedError('CHANNEL_CLOSED', 'the peer ended without closing the channel');
    if (!this.#isSending) this.#detach();
    this.#handlers.onClose(error);
  }

  /**
   * The peer's process or thread has ended. Its watcher always calls this, also after `destroy()`: only then
   * is the peer's part of the arena free. Delivers what the peer had sent, then calls `onClose`; never inside
   * this call.
   */
  peerExited(): void {
    if (this.#hasPeerExited) return;
    this.#hasPeerExited = true;
    if (this.#isAttached) {
      setImmediate(() => this.#drainAfterExit());
      return;
    }
    this.#large.peerEnded();
    this.#onPeerEnded();
  }

  #drainAfterExit(): void {
    try {
      this.pump();
    } finally {
      // Again while a limit or a listener that threw has left frames.
      if (this.#isAttached && !this.#isPeerDone) setImmediate(() => this.#drainAfterExit());
    }
  }

  handle(handlers: Partial<ChannelHandlers>): void {
    this.#handlers = { ...this.#handlers, ...handlers };
  }

  // Written here, applied when the loop is about to sleep: each call refs and each answer unrefs, and a call
  // into the binary is a good part of a round trip (bench/cases/round-trip.js).
  ref(): void {
    if (!this.#isAttached) return;
    this.#refs[endWordAt.wanted] = 1;
    if (this.#refs[endWordAt.held] === 0) this.#loop.native.settleRefs();
  }

  unref(): void {
    this.#refs[endWordAt.wanted] = 0;
  }

  close(): void {
    if (!this.#isSending) return;
    this.#stopSending();
    if (!this.#large.isWaiting || this.#isPeerDone) this.#publishClose();
  }

  #publishClose(): void {
    Atomics.store(this.#words, this.#at.ownState, sideState.closed);
    this.#wakePeer();
    if (this.#isPeerDone) this.#detach();
  }

  #stopSending(): void {
    this.#isSending = false;
    this.#mayWrite = false;
  }

  destroy(): void {
    this.#stopSending();
    this.#isPeerDone = true;
    this.#detach();
  }

  #fail(what: string): void {
    this.#failWith(new CodedError('SEGMENT_CORRUPT', `${what} is invalid: the channel is closed`));
  }

  #failWith(error: Error): void {
    if (this.#isPeerDone) return;
    this.destroy();
    this.#handlers.onClose(error);
  }

  /** Fails after `trySend`, in which no listener may run. */
  #failLater(what: string): void {
    this.#stopSending();
    setImmediate(() => this.#fail(what));
  }

  /** Wakes the peer when it sleeps. The side that clears the word rings, so a batch rings once. */
  #wakePeer(): void {
    if (!this.#isAttached) return;
    if (Atomics.exchange(this.#words, this.#peerAsleepAt, 0) !== 0) {
      this.#loop.native.ring(this.#end);
    }
  }

  /** Gives back descriptors and hooks; the memory is freed when nothing refers to it any more. */
  #detach(): void {
    if (!this.#isAttached) return;
    Atomics.store(this.#words, this.#at.ownState, sideState.gone);
    this.#wakePeer();
    this.#isAttached = false;
    this.#reader.stop();
    this.#loop.remove(this);
    this.#loop.native.detach(this.#end);
    this.#large.end(this.#writer, this.#hasPeerExited);
    if (this.#hasPeerExited) this.#onPeerEnded();
  }
}
