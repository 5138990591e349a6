// A link between the supervisor and a process of a server over Node's own channel, for systems without the native
// core. It carries an envelope's handle, and no descriptors. Node keeps messages of this kind from the program
// (`internalMessage`); one that comes before the process has a listener would be lost, so the supervisor's wait
// for the first of the process.

import type { ChildProcess } from 'node:child_process';
import { CodedError } from '../../errors.js';
import { type ArrivedEnvelope, type Envelope, parseEnvelope } from '../protocol.js';
import type { Link, LinkListener } from '../shared/link.js';
import type { SocketHandle } from '../shared/socket-handle.js';

/** Node sends messages whose `cmd` begins with `NODE_` to `internalMessage`. */
const command = 'NODE_MANYCORE';

/** The method `send` of a `ChildProcess`, or of `process`. */
type Send = (...given: readonly unknown[]) => unknown;

/** Sends one message, with a handle or none. */
type Post = (message: object, handle?: unknown) => void;

function posting(send: Send): Post {
  return (message, handle) => {
    const envelope = { cmd: command, message };
    // `keepOpen`: the handle stays the sender's. An error: the peer is gone, which is reported elsewhere.
    send(envelope, handle, { keepOpen: true }, () => {});
  };
}

function envelopeIn(message: unknown, handle: unknown): ArrivedEnvelope | undefined {
  const { cmd, message: own }: { cmd?: unknown; message?: unknown } = Object(message);
  if (cmd !== command) return undefined;
  const envelope = parseEnvelope(own);
  return isSocketHandle(handle) ? { ...envelope, handle } : envelope;
}

function isSocketHandle(value: unknown): value is SocketHandle {
  return typeof value === 'object' && value !== null && 'listen' in value;
}

function split({ fds = [], handle, ...message }: Envelope): [message: object, handle: unknown] {
  if (fds.length === 0) return [message, handle];
  throw new CodedError('NATIVE_MISSING', 'descriptors travel between processes by the native core');
}

/** The supervisor's end. */
export class ChildLink<Body> implements Link<Body> {
  readonly #post: Post;
  /** Messages that wait for the first of the process. */
  #waiting: Envelope<Body>[] | undefined = [];

  constructor(child: ChildProcess, listener: LinkListener) {
    this.#post = posting((...given) => Reflect.apply(child.send, child, given));
    child.on('internalMessage', (message: unknown, handle: unknown) => {
      let envelope: ArrivedEnvelope | undefined;
      try {
        envelope = envelopeIn(message, handle);
        if (envelope === undefined) return;
        this.#begin();
        listener.onEnvelope(envelope);
      } catch (error) {
        listener.onError?.(error, envelope);
      }
    });
  }

  #begin(): void {
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    for (const each of waiting) this.#post(...split(each));
  }

  post(envelope: Envelope<Body>): void {
    if (this.#waiting === undefined) this.#post(...split(envelope));
    else this.#waiting.push(envelope);
  }
}

/** The end of a process of a server, from inside. */
export class ParentLink implements Link {
  readonly #post: Post;

  /** Hides Node's `send` from the program, which has none with the native core. */
  constructor(listener: Required<Omit<LinkListener, 'onError'>>) {
    const { send } = process;
    if (send === undefined) throw new CodedError('WORKER_PROTOCOL', 'the process has no channel');
    this.#post = posting((...given) => Reflect.apply(send, process, given));
    Reflect.deleteProperty(process, 'send'); // Node itself calls `disconnect`
    process.on('internalMessage', (message: unknown, handle: unknown) => {
      const envelope = envelopeIn(message, handle);
      if (envelope !== undefined) listener.onEnvelope(envelope);
    });
    process.once('disconnect', () => listener.onClose());
    process.channel?.ref();
  }

  post(envelope: Envelope): void {
    this.#post(...split(envelope));
  }

  unref(): void {
    process.channel?.unref();
  }
}
