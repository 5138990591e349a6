// Frames between one loop and all others of a cluster: written, signed and handed to NATS on one side, read
// and refused or believed on the other. Not here: which frames there are to send, and what they mean (peer.ts).

import { ByteReader } from '../channels/index.js';
import { CodedError } from '../errors.js';
import { announcements, messageOf } from '../internal/index.js';
import { follow } from './listen.js';
import type { NatsConnection, NatsMessage, NatsStatus } from './nats.js';
import { Outbox } from './outbox.js';
import { type FrameHead, readHead, signatureBytes, stampFrame, writeFrame } from './protocol.js';
import { checkAge, ReplayWindow, type Signer, verified, windowSize } from './signature.js';
import { ClusterValues, type SenderValues } from './values.js';

/** Loops whose frames are known; without a secret anybody may make up new ones. */
const maxSenders = 4096;
/** Of a server that has not said it. */
const defaultMaxPayload = 2 ** 20;

/** What is known of a loop that sends. */
interface Sender {
  readonly values: SenderValues;
  readonly window: ReplayWindow;
}

export class ClusterWire {
  /** There is room again. */
  onDrain: () => void = () => {};
  /** The connection is lost, perhaps with what was on its way. */
  onLost: () => void = () => {};
  /** The server, some time later, does not permit what was done. */
  onError: (error: unknown) => void = () => {};
  readonly #connection: NatsConnection;
  readonly #signer: Signer | undefined;
  readonly #sender: string;
  readonly #values: ClusterValues;
  readonly #outbox: Outbox;
  readonly #senders = new Map<string, Sender>();
  #lastFrame = 0;
  #maxPayload = defaultMaxPayload;

  /** `sender` names the loop, and no other in the whole cluster: 32 hexadecimal digits. */
  constructor(connection: NatsConnection, signer: Signer | undefined, sender: string) {
    this.#connection = connection;
    this.#signer = signer;
    this.#sender = sender;
    this.#values = new ClusterValues(signer !== undefined);
    this.#outbox = new Outbox(connection, (...frame) => this.#finish(...frame));
    this.#outbox.onDrain = () => this.onDrain();
    follow(connection, this.#onStatus);
  }

  /** What the client says of its connection. */
  readonly #onStatus = ({ type, error }: NatsStatus): void => {
    if (type === 'disconnect') {
      announcements.clusterLost.publish({ unconfirmed: this.#outbox.disconnected() });
      // What is still on its way there may come behind what goes out next: then it is refused.
      this.#lastFrame += windowSize;
      this.onLost();
    } else if (type === 'reconnect') {
      this.#outbox.reconnected();
      announcements.clusterBack.publish({});
    } else if (type === 'error') this.onError(error);
  };

  get isClosed(): boolean {
    return this.#connection.isClosed();
  }

  /** There is a connection now. */
  get isConnected(): boolean {
    return this.#outbox.isConnected;
  }

  get hasRoom(): boolean {
    return this.#outbox.hasRoom;
  }

  /**
   * Sends a value. `address` is for errors. Throws `BUS_TOO_LARGE`, `BUS_FULL`, `CLUSTER_CLOSED`,
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

  /** When it goes out, which may be long after it was posted. */
  #finish(subject: string, frame: Buffer, reply: string | undefined): void {
    this.#lastFrame += 1;
    stampFrame(frame, this.#lastFrame, Date.now());
    this.#signer?.sign(frame, targetOf(subject, reply));
  }

  /** Calls `use` with what reads the value, in order; a frame that is refused is told, and gone. */
  open(message: NatsMessage, use: (head: FrameHead, read: () => unknown) => void): void {
    const { subject, reply, data } = message;
    try {
      const reader = new ByteReader(verified(this.#signer, data, targetOf(subject, reply)));
      const head = readHead(reader);
      const { values, window } = this.#senderOf(head);
      if (this.#signer !== undefined) checkAge(head, Date.now());
      window.check(head);
      values.receive(reader, (read) => use(head, read));
    } catch (error) {
      announcements.clusterRefused.publish({ why: messageOf(error) });
    }
  }

  #senderOf({ sender: id }: FrameHead): Sender {
    const known = this.#senders.get(id);
    if (known !== undefined) {
      this.#senders.delete(id); // the last one heard is the last to be forgotten
      this.#senders.set(id, known);
      return known;
    }
    const [oldest] = this.#senders.size < maxSenders ? [] : this.#senders.keys();
    if (oldest !== undefined) this.#senders.delete(oldest);
    const sender = { values: this.#values.reader(), window: new ReplayWindow() };
    this.#senders.set(id, sender);
    return sender;
  }

  /** Resolves when the server has had everything; where there is none now, at once. */
  async flush(): Promise<void> {
    if (!this.isClosed) await this.#connection.flush().catch(() => {});
  }

  /** As `flush`, and when all has been taken that was on its way here then. */
  async catchUp(): Promise<void> {
    await this.flush();
    await Promise.all([...this.#senders.values()].map(({ values }) => values.settled()));
  }

  /** What was sent goes out first, and what comes until then is taken. */
  async close(): Promise<void> {
    this.#outbox.hurry();
    if (!this.isClosed) await this.#connection.drain().catch(() => {});
    await this.#connection.close();
  }

  /** The connection is closed for good; what waited for it is lost, and told. */
  ended(): void {
    const lost = this.#outbox.close();
    if (lost > 0) announcements.clusterLost.publish({ unconfirmed: lost });
  }
}

/** A frame is good for the subject to which it was sent, and answers to it for the place that it names. */
function targetOf(subject: string, reply: string | undefined): string {
  return `${subject}\0${reply ?? ''}`;
}

function tooLarge(address: string, { byteLength }: Buffer, most: number): CodedError {
  const text = `a message to ${address} has ${byteLength} bytes, and the NATS server takes ${most}`;
  const wayOut = 'send a stream (openStream), or raise max_payload of the server';
  return new CodedError('BUS_TOO_LARGE', `${text}: ${wayOut}`);
}
