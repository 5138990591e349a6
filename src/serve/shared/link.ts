// Links between supervisor, processes and loops: each carries envelopes (protocol.ts) with their descriptors.
// The native calls on the way of a message are here and in `ControlSocket` alone. Without the native core
// portable/ipc-link.ts is the link between processes.
//
// Contract of a link:
// 1. Envelopes arrive in the order in which they were posted, each with its own descriptors.
// 2. `post` sends the envelope whole, or throws `NATIVE_REFUSED` and sends nothing. Without a peer, an envelope
//    without descriptors is dropped: the end of the peer is reported elsewhere.
// 3. Descriptors move with their envelope. `post` takes them over, also when it throws; the listener gets those
//    of the receiver, and closes them or passes them on. Loops never close any: in a thread Node warns of that.

import { type Channel, Wire } from '../../channels/index.js';
import type { ControlSocket } from '../../worker/index.js';
import { type ArrivedEnvelope, type Envelope, parseEnvelope } from '../protocol.js';
import { closeFds } from './dup-fds.js';

/** One end, to send. */
export interface Link<Body = unknown> {
  post(envelope: Envelope<Body>): void;
  /** Polls like `Wire.poll`; missing where it would return false. */
  poll?(): boolean;
}

export interface LinkListener {
  onEnvelope(envelope: ArrivedEnvelope): void;
  /** Called with what `onEnvelope` throws, and for descriptors or envelopes that are broken; else it is thrown. */
  onError?(error: unknown, envelope: ArrivedEnvelope | undefined): void;
  /** Called as `WireListener.onClose`. */
  onClose?(error?: Error): void;
}

/** The way of descriptors beside a wire. */
export interface DescriptorPort {
  /** Sends all or none, ahead of their message, and takes them over. Throws `NATIVE_REFUSED`. */
  send(fds: readonly number[]): void;
  /** Returns those of a message that names these numbers of the sender. Throws `NATIVE_REFUSED`. */
  receive(fds: readonly number[]): readonly number[];
}

/** Between threads of one process: they have the same descriptors. */
export const threadPort: DescriptorPort = { send: () => {}, receive: (fds) => fds };

/** Between two processes. */
export function socketPort(socket: ControlSocket): DescriptorPort {
  return {
    send(fds) {
      try {
        socket.send(fds);
      } finally {
        closeFds(fds);
      }
    },
    receive: () => socket.receive(),
  };
}

/** A link over a wire, with a port for its descriptors. */
export class WireLink<Body = unknown> implements Link<Body> {
  readonly #wire: Wire<Envelope<Body>>;
  readonly #port: DescriptorPort;
  readonly #listener: LinkListener;

  constructor(channel: Channel, port: DescriptorPort, listener: LinkListener) {
    this.#port = port;
    this.#listener = listener;
    this.#wire = new Wire(channel, {
      onMessage: (message) => this.#receive(message),
      onClose: (error) => listener.onClose?.(error),
    });
  }

  post(envelope: Envelope<Body>): void {
    const { fds = [] } = envelope;
    if (fds.length > 0) this.#port.send(fds);
    this.#wire.post(envelope);
  }

  poll(): boolean {
    return this.#wire.poll();
  }

  unref(): void {
    this.#wire.unref();
  }

  close(): void {
    this.#wire.close();
  }

  #receive(message: unknown): void {
    let envelope: ArrivedEnvelope | undefined;
    try {
      envelope = parseEnvelope(message);
      const fds = envelope.fds.length === 0 ? [] : this.#port.receive(envelope.fds);
      this.#listener.onEnvelope({ ...envelope, fds });
    } catch (error) {
      if (this.#listener.onError === undefined) throw error;
      this.#listener.onError(error, envelope);
    }
  }
}

/** A link to a listener in this thread, which gets each envelope later, as over a wire, or at the next `deliver`. */
export function localLink<Body>(
  onEnvelope: (envelope: ArrivedEnvelope) => void,
): Link<Body> & { deliver(): void } {
  const waiting: ArrivedEnvelope[] = [];
  const deliver = (): void => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) onEnvelope(next);
  };
  return {
    post({ loop, id = 0, body, fds = [], handle }) {
      waiting.push({ loop, id, body, fds, handle });
      queueMicrotask(deliver);
    },
    deliver,
  };
}
