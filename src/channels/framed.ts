// A channel over anything that carries bytes in order: batching, the states of both directions, and
// the calls to the listeners. Frames of one turn of the event loop go out in one write, because a
// write costs as much as a hundred small frames (bench/cases/throughput).
//
// Each direction ends with a goodbye of its own. Bytes that end without one mean that the peer died.
// Not here: the carriers (socket/, memory/), the bytes of a frame (frames.ts).

import { CodedError } from '../errors.js';
import { errorOf, nextTick } from '../lib/index.js';
import { FrameBatch, FrameParser, type FrameSink } from './frames.js';
import type { BodyWriter, Channel, ChannelHandlers, ChannelKind, SendOutcome } from './types.js';

/** A batch buffer, in bytes; a fuller batch is written at once. */
const batchBytes = 64 * 1024;
/** So many bytes may wait in this process before a frame is refused as `full`. */
const queueLimitBytes = 4 * 1024 * 1024;
/** And so many may still wait when `onDrain` follows. */
const drainedBytes = queueLimitBytes / 2;
const maxSpareBuffers = 4;

/** Carries bytes to the peer. It calls its listener only after `connect` has returned. */
export interface Carrier {
  /** Bytes handed over that may still wait in this process. */
  readonly queuedBytes: number;
  /** Takes bytes over; `giveBack` may be called, once, when the buffer may be used again. */
  write(bytes: Buffer, giveBack: (bytes: Buffer) => void): void;
  ref(): void;
  unref(): void;
  /** Both sides have sent a goodbye: closes once everything is out. */
  end(): void;
  /** Closes at once. May be called again. */
  destroy(): void;
  /** Hands over what has arrived; missing where only the event loop can. */
  poll?(): void;
}

/** The channel, as its carrier calls it, always from the event loop. */
export interface CarrierListener {
  onBytes(piece: Buffer): void;
  /** `queuedBytes` is less than it was. */
  onRoom(): void;
  /** No more bytes will come: the end, or a failure; a CodedError is passed on unchanged. */
  onEnd(cause: Error | undefined): void;
}

/** Raises a listener's error in the process, once the current work is done: the channel goes on. */
function raiseLater(error: unknown): void {
  nextTick(() => {
    throw error;
  });
}

export class FramedChannel implements Channel {
  readonly kind: ChannelKind;
  readonly poll: (() => void) | undefined;
  #handlers: ChannelHandlers;
  readonly #carrier: Carrier;
  readonly #batch: FrameBatch;
  readonly #parser: FrameParser;
  readonly #spare: Buffer[];
  readonly #giveBack: (bytes: Buffer) => void;
  readonly #flushNow: () => void;
  receivedBytes: number;
  #handedOverBytes: number;
  #willFlush: boolean;
  /** True while a body writer runs, which must not send. */
  #isWriting: boolean;
  #wantsDrain: boolean;
  #sentGoodbye: boolean;
  /** `onClose` was called, or never will be. */
  #hasClosed: boolean;
  #isOver: boolean;

  /**
   * `connect` makes the carrier; it must not call the listener before it returns. A frame of the peer
   * with more than `maxBodyBytes` ends the channel.
   */
  constructor(
    kind: ChannelKind,
    connect: (listener: CarrierListener) => Carrier,
    maxBodyBytes?: number,
  ) {
    this.kind = kind;
    this.#handlers = { onFrame: () => {}, onDrain: () => {}, onClose: () => {} };
    this.#batch = new FrameBatch(Buffer.allocUnsafeSlow(batchBytes));
    this.#spare = [];
    this.#giveBack = (bytes) => this.#keep(bytes);
    this.#flushNow = () => this.#flush();
    this.receivedBytes = 0;
    this.#handedOverBytes = 0;
    this.#willFlush = false;
    this.#isWriting = false;
    this.#wantsDrain = false;
    this.#sentGoodbye = false;
    this.#hasClosed = false;
    this.#isOver = false;
    const sink: FrameSink = {
      onFrame: (frameKind, task, target, body) => {
        if (this.#hasClosed) return;
        try {
          this.#handlers.onFrame(frameKind, task, target, body);
        } catch (error) {
          raiseLater(error);
        }
      },
      onGoodbye: () => this.#reportClose(undefined),
    };
    this.#parser = new FrameParser(sink, maxBodyBytes);
    this.#carrier = connect({
      onBytes: (piece) => this.#takeIn(piece),
      onRoom: () => this.#drain(),
      onEnd: (cause) => this.#takeEnd(cause),
    });
    const carrier = this.#carrier;
    this.poll =
      carrier.poll &&
      (() => {
        if (!this.#isOver) this.#handOver();
        carrier.poll?.();
      });
  }

  handle(handlers: Partial<ChannelHandlers>): void {
    this.#handlers = { ...this.#handlers, ...handlers };
  }

  get sentBytes(): number {
    return this.#handedOverBytes + this.#batch.sizeBytes;
  }

  trySend<T>(
    kind: number,
    task: number,
    target: number,
    write: BodyWriter<T>,
    value: T,
  ): SendOutcome {
    if (this.#isOver || this.#sentGoodbye) return 'closed';
    const batch = this.#batch;
    if (this.#isWriting || this.#carrier.queuedBytes + batch.sizeBytes >= queueLimitBytes) {
      this.#wantsDrain = true;
      this.#flushSoon();
      return 'full';
    }
    this.#isWriting = true;
    try {
      if (!batch.add(kind, task, target, write, value)) return 'refused';
    } finally {
      this.#isWriting = false;
    }
    if (batch.sizeBytes >= batchBytes) this.#handOver();
    else this.#flushSoon();
    return 'sent';
  }

  ref(): void {
    if (!this.#isOver) this.#carrier.ref();
  }

  unref(): void {
    if (!this.#isOver) this.#carrier.unref();
  }

  close(): void {
    if (this.#isOver || this.#sentGoodbye) return;
    this.#sentGoodbye = true;
    this.#wantsDrain = false;
    this.#batch.addGoodbye();
    this.#handOver();
    if (this.#hasClosed) this.#end();
  }

  destroy(): void {
    this.#hasClosed = true;
    this.#isOver = true;
    this.#parser.stop();
    this.#carrier.destroy();
  }

  #flushSoon(): void {
    if (this.#willFlush) return;
    this.#willFlush = true;
    nextTick(this.#flushNow);
  }

  #flush(): void {
    this.#willFlush = false;
    if (this.#isOver) return;
    this.#handOver();
    this.#drain();
  }

  #handOver(): void {
    if (this.#batch.sizeBytes === 0) return;
    this.#handedOverBytes += this.#batch.sizeBytes;
    const next = this.#spare.pop() ?? Buffer.allocUnsafeSlow(batchBytes);
    this.#carrier.write(this.#batch.take(next), this.#giveBack);
  }

  #keep(bytes: Buffer): void {
    if (bytes.buffer.byteLength !== batchBytes || this.#spare.length >= maxSpareBuffers) return;
    this.#spare.push(Buffer.from(bytes.buffer, 0, batchBytes));
  }

  #drain(): void {
    if (!this.#wantsDrain || this.#isOver || this.#sentGoodbye) return;
    if (this.#carrier.queuedBytes + this.#batch.sizeBytes > drainedBytes) return;
    this.#wantsDrain = false;
    try {
      this.#handlers.onDrain();
    } catch (error) {
      raiseLater(error);
    }
  }

  #takeIn(piece: Buffer): void {
    if (this.#isOver) return;
    this.receivedBytes += piece.byteLength;
    try {
      this.#parser.push(piece);
    } catch (error) {
      this.#fail(errorOf(error));
    }
  }

  #takeEnd(cause: Error | undefined): void {
    if (this.#isOver) return;
    if (cause instanceof CodedError) {
      this.#fail(cause);
      return;
    }
    const message = 'the peer ended without closing the channel: its process or thread is gone';
    this.#fail(new CodedError('CHANNEL_CLOSED', message, cause && { cause }));
  }

  #fail(error: Error): void {
    this.#isOver = true;
    this.#parser.stop();
    this.#carrier.destroy();
    this.#reportClose(error);
  }

  #reportClose(error: Error | undefined): void {
    if (this.#hasClosed) return;
    this.#hasClosed = true;
    if (this.#sentGoodbye && !this.#isOver) this.#end();
    try {
      this.#handlers.onClose(error);
    } catch (thrown) {
      raiseLater(thrown);
    }
  }

  #end(): void {
    this.#isOver = true;
    this.#parser.stop();
    this.#carrier.end();
  }
}
