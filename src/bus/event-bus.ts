// The bus of one loop: its parts, and the peers and the uplink that are attached to it. Its methods are those
// of every bus (bus.ts), for all addresses. Not here: the buses of units in the loop, which share its parts.

import { addSource } from '../agent/index.js';
import { ScopedBus } from './bus.js';
import type { Delivery } from './delivery/message.js';
import { type Locality, Receivers } from './delivery/receivers.js';
import { Requests } from './delivery/requests.js';
import { BusState } from './delivery/state.js';
import { TurnQueue } from './delivery/turn-queue.js';
import { busClosed } from './errors.js';
import { Filters } from './filters/filters.js';
import { HandOffs } from './hand-over/hand-offs.js';
import { Monitors } from './monitors/monitors.js';
import { AdvertisedServices } from './services/micro.js';
import { LocalTransport } from './transports/local.js';
import type {
  Attached,
  AttachedUplink,
  Peer,
  RemoteTransport,
  Uplink,
} from './transports/transport.js';

export interface BusOptions {
  /** Returns a body's copy for a consumer, which its sender cannot change. Throws if it cannot travel. */
  readonly copy: (body: unknown) => unknown;
}

/** State that all buses of one loop share. */
export interface BusParts {
  readonly state: BusState;
  readonly filters: Filters;
  readonly requests: Requests;
  readonly queue: TurnQueue;
  readonly receivers: Receivers;
  readonly local: LocalTransport;
  readonly handOffs: HandOffs;
  readonly services: AdvertisedServices;
  readonly monitors: Monitors;
}

function makeParts({ copy }: BusOptions): BusParts {
  const state = new BusState();
  const filters = new Filters(state);
  const requests = new Requests(filters, state);
  const queue: TurnQueue = new TurnQueue(() => receivers.noteDrained());
  const receivers: Receivers = new Receivers(queue, (...end) => monitors.ended(...end));
  const monitors = new Monitors(receivers, state);
  const local = new LocalTransport({ copy, queue, receivers, state });
  const handOffs = new HandOffs({ receivers, queue, local });
  const services = new AdvertisedServices();
  return { state, filters, requests, queue, receivers, local, handOffs, services, monitors };
}

export class EventBus extends ScopedBus implements Disposable {
  /** For the buses of units. @internal */
  readonly parts: BusParts;
  readonly #unregister = addSource('bus', this, ({ stats }) => stats);

  /** @internal */
  constructor(options: BusOptions) {
    const parts = makeParts(options);
    super(parts);
    this.parts = parts;
  }

  /** Attaches a peer: its consumers get messages of this bus, and it is notified of the consumers here. */
  attach(peer: Peer): Attached {
    const { receivers, handOffs } = this.parts;
    receivers.addPeer(peer);
    handOffs.peerAdded(peer);
    return {
      receive: (message) => this.#receive(peer, message),
      interest: (address, consumers) => receivers.announced(peer, address, consumers),
      noted: (note) => handOffs.receive(peer, note),
      blocked: (isBlocked) => receivers.setBlocked(peer, isBlocked),
      drained: () => {
        handOffs.drained();
        receivers.noteDrained();
      },
      ended: (hasLeft) => {
        receivers.deletePeer(peer, hasLeft);
        handOffs.peerEnded(peer);
        receivers.noteDrained();
      },
    };
  }

  /**
   * Attaches an uplink: it carries everything that is sent here, unless `locality` or the sender excludes it.
   * Throws `OPTION_INVALID` if a consumer's address is not valid for it.
   */
  attachUplink(uplink: Uplink, locality: Locality): AttachedUplink {
    const { receivers, state, services, monitors } = this.parts;
    receivers.setUplink(uplink, locality);
    services.setUplink(uplink);
    monitors.lookAgain();
    return {
      receive: (message) => this.#receive(uplink, message),
      undelivered: () => {
        state.undelivered += 1;
      },
      drained: () => receivers.noteDrained(),
      ended: () => {
        receivers.endUplink();
        services.endUplink();
        receivers.noteDrained();
      },
    };
  }

  /**
   * Takes a message from elsewhere. Only consumers here may get it, or it would circulate; only from an uplink
   * it goes to others when the last consumer here has just closed.
   */
  #receive(from: RemoteTransport, message: Delivery): void {
    const { state, receivers, local, handOffs } = this.parts;
    const { address, waiter } = message;
    if (state.isClosed) {
      waiter?.settle({ isDone: false, error: busClosed() });
    } else if (message.isPublished) {
      local.spread(message, receivers.consumersForPeer(from, address), from);
    } else if (handOffs.incoming.size === 0 || !handOffs.takeForwarded(message)) {
      const consumer = receivers.nextForPeer(from, address);
      if (consumer !== undefined) consumer.take(message, from);
      else if (receivers.isUplink(from)) local.passTo(from, message);
      else state.refuse(message);
    }
  }

  /** Closes all consumers; waiting requests reject with `BUS_CLOSED`. A second call does nothing. */
  close(): void {
    const { state, requests, receivers, local, handOffs } = this.parts;
    if (state.isClosed) return;
    state.isClosed = true;
    this.#unregister();
    requests.rejectAll(busClosed());
    for (const each of receivers.here) each.close();
    for (const each of handOffs.close()) local.passOn(each);
  }

  [Symbol.dispose](): void {
    this.close();
  }
}
