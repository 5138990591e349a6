// The channel over a message port, between threads of one process: it works without the binary. A port takes
// everything at once, so the receiver confirms what it has taken in, and the sender counts what is under way.
// Not here: batching and the states of a channel (framed.ts).

import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { errorOf } from '../../lib/index.js';
import { type Carrier, type CarrierListener, FramedChannel } from '../framed.js';
import type { Channel, ChannelEnd, ChannelOffer } from '../types.js';
import { parsePortMessage } from './protocol.js';

/** Smallest confirmation, in bytes: a message of its own costs more than small frames. */
const receiptBytes = 256 * 1024;
/** Above this the buffer itself is handed over; below, an exact copy is cheaper than a new buffer. */
const copiedBytes = 32 * 1024;

class PortCarrier implements Carrier {
  readonly #port: MessagePort;
  readonly #listener: CarrierListener;
  #queuedBytes: number;
  #unconfirmedBytes: number;
  #hasEnded: boolean;

  constructor(port: MessagePort, listener: CarrierListener) {
    this.#port = port;
    this.#listener = listener;
    this.#queuedBytes = 0;
    this.#unconfirmedBytes = 0;
    this.#hasEnded = false;
    port.on('message', (message: unknown) => this.#take(message));
    port.on('close', () => this.#end(undefined));
    port.on('messageerror', (error) => this.#end(error));
    this.unref();
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  write(bytes: Buffer, giveBack: (bytes: Buffer) => void): void {
    this.#queuedBytes += bytes.byteLength;
    if (bytes.byteLength > copiedBytes) {
      const whole = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      this.#port.postMessage(whole, bytes.buffer instanceof ArrayBuffer ? [bytes.buffer] : []);
      return;
    }
    const copy = new Uint8Array(bytes);
    this.#port.postMessage(copy, [copy.buffer]);
    giveBack(bytes);
  }

  ref(): void {
    this.#port.ref();
  }

  unref(): void {
    this.#port.unref();
  }

  end(): void {
    this.destroy();
  }

  poll(): void {
    for (;;) {
      const received = receiveMessageOnPort(this.#port);
      if (received === undefined || this.#hasEnded) return;
      this.#take(received.message);
    }
  }

  destroy(): void {
    this.#hasEnded = true;
    this.#port.close();
  }

  #take(message: unknown): void {
    if (this.#hasEnded) return;
    try {
      const parsed = parsePortMessage(message);
      if (typeof parsed === 'number') this.#confirm(parsed);
      else this.#takeFrames(parsed);
    } catch (error) {
      this.#end(errorOf(error));
    }
  }

  #confirm(sizeBytes: number): void {
    this.#queuedBytes = Math.max(0, this.#queuedBytes - sizeBytes);
    this.#listener.onRoom();
  }

  #takeFrames(frames: Uint8Array): void {
    this.#unconfirmedBytes += frames.byteLength;
    this.#listener.onBytes(Buffer.from(frames.buffer, frames.byteOffset, frames.byteLength));
    if (this.#unconfirmedBytes < receiptBytes || this.#hasEnded) return;
    this.#port.postMessage(this.#unconfirmedBytes);
    this.#unconfirmedBytes = 0;
  }

  #end(cause: Error | undefined): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#listener.onEnd(cause);
  }
}

/** A channel over one port of a pair, which is then the channel's alone. */
function memoryChannel(port: MessagePort): Channel {
  return new FramedChannel('memory', (listener) => new PortCarrier(port, listener));
}

function endOf(channel: Channel): ChannelEnd {
  return { channel, claims: undefined, blocks: undefined };
}

/** Makes the parent's half, for a thread worker. */
export function offerMemory(): ChannelOffer {
  const { port1, port2 } = new MessageChannel();
  return {
    ticket: { kind: 'memory', port: port2 },
    stdio: [],
    transfer: [port2],
    open: () => endOf(memoryChannel(port1)),
    discard: () => port1.close(),
  };
}

/** Makes the worker's half. */
export function acceptMemory(port: MessagePort): ChannelEnd {
  return endOf(memoryChannel(port));
}
