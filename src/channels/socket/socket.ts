// The channel over a stream socket, between processes: it works on every platform and in every container. The
// parent gives the worker one end as descriptor 3; frames are our own (frames.ts), because the IPC of
// child_process encodes each message by itself.
// Not here: batching and the states of a channel (framed.ts).

import { closeSync, readSync } from 'node:fs';
import type * as Net from 'node:net';
import type { Duplex } from 'node:stream';
import { CodedError } from '../../errors.js';
import { callNative, nativeBinding } from '../../native.js';
import { type Carrier, type CarrierListener, FramedChannel } from '../framed.js';
import type { Channel, ChannelEnd, ChannelOffer } from '../types.js';

/** The descriptor of a worker's end. */
const workerDescriptor = 3;
const drainPieceBytes = 64 * 1024;

class SocketCarrier implements Carrier {
  readonly #stream: Duplex;
  readonly #listener: CarrierListener;
  #hasEnded: boolean;

  constructor(stream: Duplex, listener: CarrierListener) {
    this.#stream = stream;
    this.#listener = listener;
    this.#hasEnded = false;
    let cause: Error | undefined;
    stream.on('data', (piece: Buffer) => listener.onBytes(piece));
    stream.on('end', () => this.#end(undefined));
    stream.on('error', (error) => {
      cause = error;
    });
    stream.on('close', () => this.#end(cause));
    this.unref();
  }

  get queuedBytes(): number {
    return this.#stream.writableLength;
  }

  write(bytes: Buffer, giveBack: (bytes: Buffer) => void): void {
    this.#stream.write(bytes, (error) => {
      if (error) {
        this.poll();
        this.#end(error);
        return;
      }
      giveBack(bytes);
      this.#listener.onRoom();
    });
  }

  ref(): void {
    this.#keepLoop('ref');
  }

  unref(): void {
    this.#keepLoop('unref');
  }

  /** Sockets have these methods; streams in tests do not. */
  #keepLoop(how: 'ref' | 'unref'): void {
    const method: unknown = Reflect.get(this.#stream, how);
    if (typeof method === 'function') Reflect.apply(method, this.#stream, []);
  }

  end(): void {
    this.#stream.end(() => this.#stream.destroy());
  }

  destroy(): void {
    this.#hasEnded = true;
    this.#stream.destroy();
  }

  #end(cause: Error | undefined): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#listener.onEnd(cause);
  }

  /**
   * Reads what the kernel has. Also called when the peer has died, while the descriptor is open: a failed write
   * destroys the stream, and with it what the peer has sent before.
   */
  poll(): void {
    const descriptor = descriptorOf(this.#stream);
    if (descriptor === undefined || this.#stream.destroyed) return;
    const piece = Buffer.allocUnsafe(drainPieceBytes);
    try {
      for (;;) {
        const sizeBytes = readSync(descriptor, piece);
        if (sizeBytes === 0) return;
        this.#listener.onBytes(piece.subarray(0, sizeBytes));
      }
    } catch {
      // EAGAIN: nothing more is there. ECONNRESET and the like: nothing more will be.
    }
  }
}

function descriptorOf(stream: Duplex): number | undefined {
  const handle: unknown = '_handle' in stream ? stream._handle : undefined;
  if (typeof handle !== 'object' || handle === null || !('fd' in handle)) return undefined;
  return typeof handle.fd === 'number' && handle.fd >= 0 ? handle.fd : undefined;
}

/** A channel over a connected stream, which is then the channel's alone. */
function socketChannel(stream: Duplex, maxFrameBytes?: number): Channel {
  const connect = (listener: CarrierListener) => new SocketCarrier(stream, listener);
  return new FramedChannel('socket', connect, maxFrameBytes);
}

/** A channel over a descriptor of a connected socket, which is then the channel's alone. */
export function overSocket(fd: number, maxFrameBytes?: number): Channel {
  return socketChannel(socketAt(fd), maxFrameBytes);
}

/** One end over a connected stream, or one that connects; it is then the channel's alone. */
export function overStream(stream: Duplex, maxFrameBytes?: number): ChannelEnd {
  return endOf(socketChannel(stream, maxFrameBytes));
}

function socketAt(fd: number): Net.Socket {
  // Loaded here: a worker over another channel starts faster and smaller without it. Not by the loader of a
  // test runner, which refuses everything once its file is over.
  const { Socket } = process.getBuiltinModule('node:net');
  return new Socket({ fd, readable: true, writable: true });
}

function endOf(channel: Channel): ChannelEnd {
  return { channel, claims: undefined, blocks: undefined };
}

/** Makes the parent's half, for a process worker. `open` throws CHANNEL_UNAVAILABLE without its pipe. */
export function offerSocket(maxFrameBytes: number | undefined): ChannelOffer {
  return {
    ticket: { kind: 'socket' },
    stdio: ['pipe'],
    transfer: [],
    open(pipe) {
      if (pipe !== undefined) return endOf(socketChannel(pipe, maxFrameBytes));
      const message = `the worker was started without a pipe at descriptor ${workerDescriptor}`;
      throw new CodedError('CHANNEL_UNAVAILABLE', message);
    },
    discard() {},
  };
}

/** Makes the worker's half. Throws CHANNEL_UNAVAILABLE when the parent gave no socket. */
export function acceptSocket(): ChannelEnd {
  let socket: Net.Socket;
  try {
    socket = openSocket();
  } catch (cause) {
    const message = `descriptor ${workerDescriptor} is no socket: start workers through a pool`;
    throw new CodedError('CHANNEL_UNAVAILABLE', message, { cause });
  }
  return endOf(socketChannel(socket));
}

/** Opens a copy that programs started by the worker do not inherit, where the native binary makes one. */
function openSocket(): Net.Socket {
  const native = nativeBinding();
  if (native === undefined) return socketAt(workerDescriptor);
  const descriptors = new native.NativeDescriptors();
  const copy = callNative(() => descriptors.duplicate(workerDescriptor));
  const socket = socketAt(copy);
  descriptors.release(copy);
  closeSync(workerDescriptor);
  return socket;
}
