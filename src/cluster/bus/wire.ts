// Frames between one loop and all others of a cluster: written, signed and sent on one side; read,
// verified, and accepted or refused on the other. Not here: the kinds of frames and their meaning
// (peer.ts).

import { ByteReader } from '../../channels/index.js';
import { CodedError } from '../../errors.js';
import { announcements, messageOf } from '../../lib/index.js';
import { refused } from '../errors.js';
import { follow, guarded } from '../nats/listen.js';
import type { NatsConnection, NatsMessage, NatsStatus } from '../nats/nats.js';
import { Outbox } from '../nats/outbox.js';
import {
  clusterFrame,
  type FrameHead,
  readHead,
  signatureBytes,
  stampFrame,
  writeFrame,
} from '../protocol.js';
import { expectsAnswer } from './forwarding.js';
import { NoticeLimit } from './notice-limit.js';
import {
  checkAge,
  isOtherClock,
  maxAgeMs,
  ReplayWindow,
  type Signer,
  verified,
  windowSize,
} from './signature.js';
import { ClusterValues, type SenderValues } from './values.js';

/** Limit of remembered senders: without a secret anybody may invent new ones. */
const maxSenders = 4096;
/** Assumed limit while the server has not sent one. */
const defaultMaxPayload = 2 ** 20;

/** State for one sending loop. */
interface Sender {
  readonly values: SenderValues;
  readonly window: ReplayWindow;
}

export interface WireListener {
  /** There is room again. */
  drained(): void;
  /** The connection is lost, perhaps with messages on their way. */
  lost(): void;
  /** The server has refused an operation, some time after it. */
  refused(error: unknown): void;
}

export interface WireOptions {
  readonly signer: Signer | undefined;
  /** Id of the loop, unique in the whole cluster: 32 hexadecimal digits. */
  readonly sender: string;
  readonly listener: WireListener;
}

export class ClusterWire {
  readonly #listener: WireListener;
  readonly #connection: NatsConnection;
  readonly #signer: Signer | undefined;
  readonly #sender: string;
  readonly #values: ClusterValues;
  readonly #outbox: Outbox;
  readonly #senders = new Map<string, Sender>();
  readonly #notices = new NoticeLimit();
  #lastFrame = 0;
  #maxPayload = defaultMaxPayload;

  constructor(connection: NatsConnection, { signer, sender, listener }: WireOptions) {
    this.#connection = connection;
    this.#listener = listener;
    this.#signer = signer;
    this.#sender = sender;
    this.#values = new ClusterValues(signer !== undefined);
    this.#outbox = new Outbox(connection, {
      finish: (subject, frame, reply) => this.#finish(subject, frame, reply),
      drained: () => listener.drained(),
    });
    follow(connection, this.#onStatus);
  }

  /** Handles a status of the connection. */
  readonly #onStatus = ({ type, error }: NatsStatus): void => {
    if (type === 'disconnect') {
      announcements.clusterLost.publish({ unconfirmed: this.#outbox.disconnected() });
      // Messages of the lost connection may arrive after later ones: a jump in numbers makes them refused.
      this.#lastFrame += windowSize;
      this.#listener.lost();
    } else if (type === 'reconnect') {
      this.#outbox.reconnected();
      announcements.clusterBack.publish({});
    } else if (type === 'error') this.#listener.refused(error);
  };

  get isClosed(): boolean {
    return this.#connection.isClosed();
  }

  /** True: there is a connection now. */
  get isConnected(): boolean {
    return this.#outbox.isConnected;
  }

  get hasRoom(): boolean {
    return this.#outbox.hasRoom;
  }

  /**
   * Sends a value. `address` is used in errors only. Throws `BUS_TOO_LARGE`, `BUS_FULL`, `CLUSTER_CLOSED`,
   * `CLUSTER_UNSIGNED`, `TRANSFER_…`.
   */
  post(kind: number, subject: string, value: unknown, reply: string | undefined, address: string) {
    const { bytes, definitions } = this.#values.encode(value);
    const head = { kind, sender: this.#sender, number: 0, time: 0 };
    const tailBytes = this.#signer === undefined ? 0 : signatureBytes;
    const frame = writeFrame(head, definitions, bytes, tailBytes);
    this.#maxPayload = this.#connection.info?.max_payload ?? this.#maxPayload;
    if (frame.byteLength > this.#maxPayload) throw tooLarge(address, frame, this.#maxPayload);
    this.#outbox.publish(subject, frame, reply);
  }

  /** Stamps and signs a frame when it is sent, which may be long after it was posted. */
  #finish(subject: string, frame: Buffer, reply: string | undefined): void {
    this.#lastFrame += 1;
    stampFrame(frame, this.#lastFrame, Date.now());
    this.#signer?.sign(frame, targetOf(subject, reply));
  }

  /** Calls `use` with a function that reads the value, in order; a refused frame is announced and dropped. */
  open(message: NatsMessage, use: (head: FrameHead, read: () => unknown) => void): void {
    const { subject, reply, data } = message;
    try {
      const reader = new ByteReader(verified(this.#signer, data, targetOf(subject, reply)));
      const head = readHead(reader);
      const now = Date.now();
      if (head.kind === clusterFrame.otherClock) {
        if (this.#signer === undefined)
          throw refused('a frame that reports another clock is unsigned');
        this.#senderOf(head).window.check(head); // one that was not believed is not believed later
        if (!isOtherClock(head.time, now)) throw sameClock();
        use(head, () => undefined);
        return;
      }
      if (this.#signer !== undefined) {
        if (Math.abs(now - head.time) > maxAgeMs) this.#noticeClock(reply);
        checkAge(head, now);
      }
      const { values, window } = this.#senderOf(head);
      window.check(head);
      values.receive(reader, (read) => use(head, read));
    } catch (error) {
      announcements.clusterRefused.publish({ why: messageOf(error) });
    }
  }

  /** Notifies the sender of a request, which would wait for its time limit. */
  #noticeClock(reply: string | undefined): void {
    if (!expectsAnswer(reply) || !this.#notices.take()) return;
    guarded(() => this.post(clusterFrame.otherClock, reply, undefined, undefined, reply));
  }

  #senderOf({ sender: id }: FrameHead): Sender {
    const known = this.#senders.get(id);
    if (known !== undefined) {
      this.#senders.delete(id); // moves it to the end: the least recently used sender is forgotten first
      this.#senders.set(id, known);
      return known;
    }
    const [oldest] = this.#senders.size < maxSenders ? [] : this.#senders.keys();
    if (oldest !== undefined) this.#senders.delete(oldest);
    const sender = { values: this.#values.reader(), window: new ReplayWindow() };
    this.#senders.set(id, sender);
    return sender;
  }

  /** Resolves when the server has received everything; at once without a connection. */
  async flush(): Promise<void> {
    if (!this.isClosed) await this.#connection.flush().catch(() => {});
  }

  /** As `flush`, and waits until the messages that were on their way here are handled. */
  async catchUp(): Promise<void> {
    await this.flush();
    await Promise.all([...this.#senders.values()].map(({ values }) => values.settled()));
  }

  /** Closes after all messages have gone out; messages that arrive until then are handled. */
  async close(): Promise<void> {
    this.#outbox.sendNow();
    if (!this.isClosed) await this.#connection.drain().catch(() => {});
    await this.#connection.close();
  }

  /** Handles the final end of the connection; waiting messages are lost, and announced as such. */
  ended(): void {
    const lost = this.#outbox.close();
    if (lost > 0) announcements.clusterLost.publish({ unconfirmed: lost });
  }
}

/** Returns the target that a signature covers: the subject, and the reply subject for answers. */
function targetOf(subject: string, reply: string | undefined): string {
  return `${subject}\0${reply ?? ''}`;
}

function sameClock(): CodedError {
  const why = 'its event loop was blocked, or somebody sent the message again';
  return refused(`a message came to a node over a minute late, though the clocks agree: ${why}`);
}

function tooLarge(address: string, { byteLength }: Buffer, most: number): CodedError {
  const text = `a message to ${address} has ${byteLength} bytes, and the NATS server takes ${most}`;
  const wayOut = 'send a stream (openStream), or raise max_payload of the server';
  return new CodedError('BUS_TOO_LARGE', `${text}: ${wayOut}`);
}
