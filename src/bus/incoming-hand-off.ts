// The new end of a consumer's way to this bus (hand-offs.ts): its successor, which gets what the old home sends on
// first, and of each who sends straight to it nothing before the old home has said that this is all of his.
// What other machines send waits until the old home has begun to give: before that it may still stay.

import { defer } from '../internal/index.js';
import { type Consumer, maxHeldMessages } from './consumer.js';
import type { Delivery } from './message.js';
import type { Outlet, Peer } from './peer.js';
import { parseHandedOn } from './protocol.js';
import { Publications } from './publications.js';
import type { Receivers } from './receivers.js';

/** A successor that waits for its consumer. */
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
  /** The name of a peer's bus, if it was told. */
  readonly nameOf: (peer: Outlet) => string | undefined;
  readonly passOn: (delivery: Delivery) => void;
  /** It is a consumer like any. */
  readonly onOpen: () => void;
}

/** Who sends: a peer, or this bus. */
type Sender = Outlet | 'here';

/** What the uplink brings, among what is kept aside by the names of buses. */
const far = 'far';

export class IncomingHandOff {
  /** Resolves when the old home is no more. */
  readonly opened: Promise<void>;
  readonly #opened = defer<void>();
  readonly #parts: IncomingParts;
  /** The name of the bus from which it comes. */
  #from: string | undefined;
  /** Who sends straight to it, by the names of their buses. */
  readonly #entered = new Map<Sender, string>();
  /** The names of those of whom nothing comes from the old home any more. */
  readonly #passed = new Set<string>();
  /** The old home is no more. */
  #isAlone = false;
  /** What came too early, by who sent it. */
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
    // Other machines send to both homes for a while: of them order is not kept.
    const isSeen = (by: Outlet): boolean =>
      receivers.isUplink(by) ? this.isExpected : this.#isSeenBy(by);
    if (!isLocal) receivers.setOpen(consumer, 1, { isReached: isSeen, isTold: isSeen });
  }

  /** Who has switched will enter: what it sent before is not for the successor. */
  #isSeenBy(peer: Outlet): boolean {
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

  /** `undefined`: from nobody any more. */
  expect(from: string | undefined): void {
    this.#from = from;
    if (from === undefined) this.#open();
    else if (!this.#parts.isLocal) this.#parts.receivers.tellUplink(this.consumer.address);
  }

  /** From now on this peer, or where there is none this bus, sends straight to it. */
  enter(peer: Peer | undefined, name: string): void {
    this.#entered.set(peer ?? 'here', name);
    const { consumer, receivers } = this.#parts;
    if (peer === undefined && !consumer.isClosed) receivers.setHere(consumer, 1);
    if (this.#isAlone) this.#openIfAll();
  }

  /** All that this one has sent to the old home has come. */
  pass(name: string): void {
    if (name === this.#from) this.pass(far);
    this.#passed.add(name);
    const early = this.#aside.get(name) ?? [];
    this.#aside.delete(name);
    this.#asideCount -= early.length;
    for (const delivery of early) this.#give(delivery);
  }

  /** It is a publication that has come by the old home. */
  #isRepeated({ origin }: Delivery): boolean {
    return origin !== undefined && !this.#publications.takesStraight(origin);
  }

  #isKeptAside(delivery: Delivery, from: Outlet | undefined): boolean {
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

  /** From the old home. */
  takeForwarded(delivery: Delivery): void {
    const { body, isPublished, origin } = parseHandedOn(delivery.body);
    if (origin !== undefined && !this.#publications.takesHandedOn(origin)) return;
    const { address } = this.consumer;
    this.#give({ ...delivery, address, body, isPublished, origin });
  }

  /** Its consumer was closed: what waits for the old home goes to others. */
  consumerClosed(): void {
    this.pass(far);
  }

  /** Where the consumer was closed meanwhile, to others. */
  #give(delivery: Delivery): void {
    if (!this.consumer.takePast(delivery)) this.#parts.passOn(delivery);
  }

  peerEnded(peer: Peer, name: string | undefined): void {
    this.#entered.delete(peer); // what was kept aside of it comes in its turn
    if (name !== undefined && name === this.#from) this.#open();
    else if (this.#isAlone) this.#openIfAll();
  }

  /** Nothing comes from the old home any more. */
  end(): void {
    this.#isAlone = true;
    this.pass(far);
    const { consumer, isLocal, receivers } = this.#parts;
    if (isLocal || consumer.isClosed) {
      this.#open();
      return;
    }
    receivers.setHere(consumer, 1);
    if (!isLocal) receivers.tellAll(consumer.address); // those who came later
    this.#openIfAll();
  }

  #openIfAll(): void {
    for (const peer of this.#parts.receivers.peers) if (!this.#isSeenBy(peer)) return;
    this.#open();
  }

  /** It is a consumer like any. */
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
        receivers.tellAll(consumer.address);
      }
    }
    this.#opened.resolve();
  }
}
