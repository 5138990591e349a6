// The source side of a hand-off (hand-offs.ts): forwards to the successor, in one stream, the messages that
// the consumer held and those that arrive until all senders have switched.

import { type Consumer, maxHeldMessages } from '../delivery/consumer.js';
import { Fifo } from '../delivery/fifo.js';
import type { Delivery, Waiter } from '../delivery/message.js';
import type { Receivers } from '../delivery/receivers.js';
import type { TurnQueue } from '../delivery/turn-queue.js';
import { writeHandedOn } from '../protocol.js';
import type { LocalTransport } from '../transports/local.js';
import type { Peer, RemoteTransport } from '../transports/transport.js';

/** The successor that takes over a consumer's messages. */
export interface HandOffRoute {
  /** The name of its bus. */
  readonly to: string;
  readonly token: string;
}

export interface OutgoingParts {
  readonly token: string;
  readonly consumer: Consumer;
  readonly isLocal: boolean;
  /** The successor's peer, and the name of its bus. */
  readonly to: { readonly peer: Peer; readonly name: string };
  readonly ownName: string;
  readonly receivers: Receivers;
  readonly queue: TurnQueue;
  readonly local: LocalTransport;
  /** Follows a request that goes to the successor, whose reply comes back through this bus. */
  readonly follow: (waiter: Waiter) => Waiter;
  readonly onEnded: () => void;
}

/** An element of the stream: a message, or the name of a bus that has switched. */
type Item = { readonly delivery: Delivery } | { readonly by: string };

export class OutgoingHandOff {
  readonly #parts: OutgoingParts;
  readonly #stream = new Fifo<Item>();
  /** Peers that still send here. */
  readonly #waitingFor = new Set<Peer>();
  #hasSwitchedHere = false;
  /** True: everything has arrived that other machines had sent before the target was subscribed. */
  #hasCaughtUp = false;
  #hasEnded = false;

  constructor(parts: OutgoingParts) {
    this.#parts = parts;
  }

  begin(): void {
    const { consumer, isLocal, receivers, queue } = this.#parts;
    consumer.divert((delivery) => this.#forward(delivery));
    if (!isLocal) {
      receivers.setOpen(consumer, 1, {
        // Other machines keep it in their count until it is gone.
        isReached: (by) => this.#isWaitingFor(by) || receivers.isUplink(by),
        isAnnouncedTo: (to) => receivers.isUplink(to),
      });
      for (const peer of receivers.peers) this.notify(peer);
    }
    void receivers.catchUp().then(() => {
      this.#hasCaughtUp = true;
      this.flush();
    });
    // After the messages sent here in this turn, whose receivers are chosen already.
    queue.again(consumer.address, () => this.#switchHere());
  }

  #isWaitingFor(by: RemoteTransport): boolean {
    for (const peer of this.#waitingFor) if (peer === by) return true;
    return false;
  }

  /** Notifies a peer, which sends here until it has switched. */
  notify(peer: Peer): void {
    const { token, consumer, isLocal, to, receivers } = this.#parts;
    if (isLocal) return;
    const { address } = consumer;
    this.#waitingFor.add(peer);
    const consumers = receivers.countFor(peer, address);
    peer.note({ type: 'moved', token, address, consumers, to: to.name });
  }

  #switchHere(): void {
    if (this.#hasEnded) return;
    const { token, consumer, isLocal, to, ownName, receivers } = this.#parts;
    const { address } = consumer;
    if (!isLocal) {
      receivers.addExtra(token, to.peer, address, true);
      to.peer.note({ type: 'switched', token, address, by: ownName });
    }
    receivers.setHere(consumer, 0);
    this.#hasSwitchedHere = true;
    this.#push({ by: ownName });
  }

  /** The peer has sent its last message here. */
  peerSwitched(peer: Peer, by: string): void {
    this.#waitingFor.delete(peer);
    this.#push({ by });
  }

  /** `name`: of the peer's bus, if it was received. */
  peerEnded(peer: Peer, name: string | undefined): void {
    if (peer === this.#parts.to.peer) this.#lose();
    else if (this.#waitingFor.delete(peer) && name !== undefined) this.#push({ by: name });
    else this.flush();
  }

  #forward(delivery: Delivery): void {
    if (this.#hasEnded) this.#parts.local.passOn(delivery);
    else if (this.#stream.length < maxHeldMessages) this.#push({ delivery });
    else this.#parts.consumer.drop(delivery);
  }

  #push(item: Item): void {
    this.#stream.push(item);
    this.flush();
  }

  /** Sends as much as there is room for. */
  flush(): void {
    const { token, to, local } = this.#parts;
    while (!this.#hasEnded && to.peer.hasRoom) {
      const item = this.#stream.shift();
      if (item === undefined) break;
      if ('by' in item) to.peer.note({ type: 'passed', token, by: item.by });
      else local.passTo(to.peer, this.#wrapped(item.delivery));
    }
    const isOver = this.#waitingFor.size === 0 && this.#hasSwitchedHere && this.#hasCaughtUp;
    if (this.#hasEnded || !isOver || this.#stream.length > 0) return;
    this.#end();
    to.peer.note({ type: 'ended', token });
  }

  #wrapped({ headers, waiter, ...content }: Delivery): Delivery {
    const { body, isPublished, origin } = content;
    const wrapped = writeHandedOn({ body, isPublished, origin });
    const { token, follow } = this.#parts;
    const followed = waiter && follow(waiter);
    return { address: token, body: wrapped, headers, waiter: followed, isPublished: false };
  }

  #end(): void {
    const { consumer, isLocal, receivers, onEnded } = this.#parts;
    this.#hasEnded = true;
    receivers.delete(consumer, isLocal);
    onEnded();
  }

  /** The successor is gone with its loop: what was not sent goes to others, as when a consumer is closed. */
  #lose(): void {
    const { token, consumer, receivers, local } = this.#parts;
    const { address } = consumer;
    this.#end();
    for (const peer of this.#waitingFor) {
      const consumers = receivers.countFor(peer, address);
      peer.note({ type: 'included', token, address, consumers });
    }
    this.#waitingFor.clear();
    for (const delivery of this.takeAll()) local.passOn(delivery);
  }

  /** Returns the messages that were not sent. */
  takeAll(): Delivery[] {
    return this.#stream.takeAll().flatMap((item) => ('by' in item ? [] : [item.delivery]));
  }
}
