// The target side of a hand-off (hand-offs.ts): the successor of a consumer, on this bus. It first gets what
// the source bus forwards. Messages that a sender sends straight to it are set aside until the source has
// reported that it forwarded all of that sender's. Messages from other machines wait until the source has
// begun to forward: before that the consumer may still stay there.

import { defer } from '../../lib/index.js';
import { type Consumer, maxHeldMessages } from '../delivery/consumer.js';
import type { Delivery } from '../delivery/message.js';
import { Publications } from '../delivery/publications.js';
import type { Receivers } from '../delivery/receivers.js';
import { parseHandedOn } from '../protocol.js';
import type { LocalTransport } from '../transports/local.js';
import type { Peer, RemoteTransport } from '../transports/transport.js';

/** A successor that is ready for its consumer's messages. */
export interface Successor {
  readonly address: string;
  readonly isLocal: boolean;
  readonly token: string;
}

export interface IncomingParts {
  readonly token: string;
  readonly consumer: Consumer;
  readonly isLocal: boolean;
  readonly receivers: Receivers;
  /** Returns the name of a peer's bus; `undefined`: not received yet. */
  readonly nameOf: (peer: RemoteTransport) => string | undefined;
  readonly local: LocalTransport;
  /** Called when it has become an ordinary consumer. */
  readonly onOpen: () => void;
}

/** A peer, or this bus. */
type Sender = RemoteTransport | 'here';

/** The uplink's key in `#aside`, beside names of buses. */
const far = 'far';

export class IncomingHandOff {
  /** Resolves when the source bus forwards nothing more. */
  readonly opened: Promise<void>;
  readonly #opened = defer<void>();
  readonly #parts: IncomingParts;
  /** The name of the source bus. */
  #from: string | undefined;
  /** Senders that send straight to it, with the names of their buses. */
  readonly #entered = new Map<Sender, string>();
  /** Names of buses of which the source forwards nothing more. */
  readonly #passed = new Set<string>();
  /** True: the source bus has ended the hand-off. */
  #isAlone = false;
  /** Messages that came too early, by sender. */
  readonly #aside = new Map<string, Delivery[]>();
  #asideCount = 0;
  readonly #publications = new Publications();

  constructor(parts: IncomingParts) {
    this.#parts = parts;
    this.opened = this.#opened.promise;
    const { consumer, isLocal, receivers } = parts;
    consumer.guard(
      (delivery, from) => this.#isRepeated(delivery) || this.#isKeptAside(delivery, from),
    );
    // Other machines send to both buses for a while: their order is not kept.
    const isSeen = (by: RemoteTransport): boolean =>
      receivers.isUplink(by) ? this.isExpected : this.#isSeenBy(by);
    if (!isLocal) receivers.setOpen(consumer, 1, { isReached: isSeen, isAnnouncedTo: isSeen });
  }

  /** True: `peer` has switched, or will switch: what it sent before is not for the successor. */
  #isSeenBy(peer: RemoteTransport): boolean {
    if (this.#entered.has(peer)) return true;
    const name = this.#parts.nameOf(peer);
    return this.#isAlone && (name === undefined || !this.#passed.has(name));
  }

  get consumer(): Consumer {
    return this.#parts.consumer;
  }

  get successor(): Successor {
    const { token, consumer, isLocal } = this.#parts;
    return { token, address: consumer.address, isLocal };
  }

  get isExpected(): boolean {
    return this.#from !== undefined;
  }

  /** Sets the source bus; `undefined`: there is none any more. */
  expect(from: string | undefined): void {
    this.#from = from;
    if (from === undefined) this.#open();
    else if (!this.#parts.isLocal) this.#parts.receivers.announceToUplink(this.consumer.address);
  }

  /** From now on this peer, or this bus if `undefined`, sends straight to it. */
  enter(peer: Peer | undefined, name: string): void {
    this.#entered.set(peer ?? 'here', name);
    const { consumer, receivers } = this.#parts;
    if (peer === undefined && !consumer.isClosed) receivers.setHere(consumer, 1);
    if (this.#isAlone) this.#openIfAll();
  }

  /** The source has forwarded all that this bus had sent there. */
  pass(name: string): void {
    if (name === this.#from) this.pass(far);
    this.#passed.add(name);
    const early = this.#aside.get(name) ?? [];
    this.#aside.delete(name);
    this.#asideCount -= early.length;
    for (const delivery of early) this.#give(delivery);
  }

  /** True: a publication that was already received by way of the source. */
  #isRepeated({ origin }: Delivery): boolean {
    return origin !== undefined && !this.#publications.takesStraight(origin);
  }

  #isKeptAside(delivery: Delivery, from: RemoteTransport | undefined): boolean {
    const isFar = from !== undefined && this.#parts.receivers.isUplink(from);
    const name = isFar ? far : this.#entered.get(from ?? 'here');
    if (name === undefined || this.#passed.has(name)) return false;
    if (this.#asideCount >= maxHeldMessages) {
      this.consumer.drop(delivery);
      return true;
    }
    const early = this.#aside.get(name) ?? [];
    this.#aside.set(name, early);
    early.push(delivery);
    this.#asideCount += 1;
    return true;
  }

  /** Takes a message that the source has forwarded. */
  takeForwarded(delivery: Delivery): void {
    const { body, isPublished, origin } = parseHandedOn(delivery.body);
    if (origin !== undefined && !this.#publications.takesHandedOn(origin)) return;
    const { address } = this.consumer;
    this.#give({ ...delivery, address, body, isPublished, origin });
  }

  /** The successor was closed: messages that wait for the source go to other consumers. */
  consumerClosed(): void {
    this.pass(far);
  }

  /** Passes the message on to other consumers when its own was closed meanwhile. */
  #give(delivery: Delivery): void {
    if (!this.consumer.takePast(delivery)) this.#parts.local.passOn(delivery);
  }

  peerEnded(peer: Peer, name: string | undefined): void {
    this.#entered.delete(peer); // messages set aside of it are delivered in their turn
    if (name !== undefined && name === this.#from) this.#open();
    else if (this.#isAlone) this.#openIfAll();
  }

  /** The source forwards nothing more. */
  end(): void {
    this.#isAlone = true;
    this.pass(far);
    const { consumer, isLocal, receivers } = this.#parts;
    if (isLocal || consumer.isClosed) {
      this.#open();
      return;
    }
    receivers.setHere(consumer, 1);
    if (!isLocal) receivers.announceToAll(consumer.address); // peers that were attached later
    this.#openIfAll();
  }

  #openIfAll(): void {
    for (const peer of this.#parts.receivers.peers) if (!this.#isSeenBy(peer)) return;
    this.#open();
  }

  /** Makes it an ordinary consumer in the place of one on this bus; announces nothing. */
  openHere(): void {
    const { consumer, isLocal, receivers, onOpen } = this.#parts;
    onOpen();
    consumer.guard(undefined);
    if (!consumer.isClosed) {
      receivers.setHere(consumer, 1);
      if (!isLocal) receivers.setOpen(consumer, 1);
    }
    this.#opened.resolve();
  }

  /** Makes it an ordinary consumer. */
  #open(): void {
    const { consumer, isLocal, receivers, onOpen } = this.#parts;
    onOpen();
    for (const name of [...this.#aside.keys()]) this.pass(name);
    consumer.guard((delivery) => this.#isRepeated(delivery));
    void receivers.catchUp().then(() => consumer.guard(undefined));
    if (!consumer.isClosed) {
      receivers.setHere(consumer, 1);
      if (!isLocal) {
        receivers.setOpen(consumer, 1);
        receivers.announceToAll(consumer.address);
      }
    }
    this.#opened.resolve();
  }
}
