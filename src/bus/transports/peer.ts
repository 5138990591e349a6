// The interfaces between a bus and its peers, the buses of other loops. All methods keep one order: what is
// sent first arrives first. Not here: the transport.

import type { Delivery } from '../delivery/message.js';
import type { HandOffNote } from '../protocol.js';

/** A way by which messages leave this loop. */
export interface Outlet {
  /** Announces that so many consumers of `address` are here from now on. */
  announce(address: string, consumers: number): void;
  /**
   * Sends to its consumers; the body was read when it returns. Throws `BUS_FULL`, or the error of a body that
   * cannot travel: then nothing was sent. A waiter is always settled, also when the peer ends before.
   */
  take(delivery: Delivery): void;
  /** False while something that it took waits; `Attached.drained` follows. */
  readonly hasRoom: boolean;
}

/** The bus of another loop, as this one uses it. */
export interface Peer extends Outlet {
  /** Sends a notice of a consumer that moves from loop to loop. */
  note(note: HandOffNote): void;
}

/** The way to other machines, as a bus uses it: it takes every message, whoever is connected. */
export interface Uplink extends Outlet {
  /** Throws `OPTION_INVALID` for an address that cannot go this way. */
  check(address: string): void;
  /** Calls `onGone` when no consumer of `address` is left there; returns a function that stops watching. */
  watch(address: string, onGone: () => void): () => void;
  /** Resolves when sent messages are on their way, and the servers have the consumers here. */
  flush(): Promise<void>;
  /** As `flush`, and when everything has arrived that was on its way here then. */
  catchUp(): Promise<void>;
}

/** A bus, as an attached outlet calls it. */
interface AttachedOutlet {
  /** Takes a message for the consumers that are here. */
  readonly receive: (delivery: Delivery) => void;
  /** The outlet has room again. */
  readonly drained: () => void;
  /** The outlet is gone, with what was on its way. */
  readonly ended: () => void;
}

/** A bus, as a peer calls it. */
export interface Attached extends AttachedOutlet {
  /** The peer has so many consumers of `address` from now on. */
  readonly interest: (address: string, consumers: number) => void;
  readonly noted: (note: HandOffNote) => void;
}

/** A bus, as an uplink calls it. */
export interface AttachedUplink extends AttachedOutlet {
  /** A message that the uplink took, and that no requester waits for, has found no consumer. */
  readonly undelivered: () => void;
}
