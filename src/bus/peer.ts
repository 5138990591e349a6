// What a bus and its peers, the buses of other loops, say to each other. All methods keep one order: what
// is told first is heard first. Not here: how it travels.

import type { Delivery } from './message.js';
import type { HandOffNote } from './protocol.js';

/** Where messages leave this loop. */
export interface Outlet {
  /** So many consumers of `address` are here from now on. */
  tell(address: string, consumers: number): void;
  /**
   * For its consumers; has taken the body when it returns. Throws `BUS_FULL`, or for a body that cannot
   * travel: then nothing was sent. Whoever waits for an answer hears one, also when the peer ends before.
   */
  take(delivery: Delivery): void;
  /** False while something that it took waits; `Attached.drained` follows. */
  readonly hasRoom: boolean;
}

/** Another loop's bus, as this one sees it. */
export interface Peer extends Outlet {
  /** What is to be known of consumers that go from loop to loop. */
  note(note: HandOffNote): void;
}

/** The way to other machines, as a bus sees it: whoever is there, it takes everything. */
export interface Uplink extends Outlet {
  /** Throws `OPTION_INVALID` for an address that cannot go this way. */
  check(address: string): void;
  /** Calls `onGone` when nobody there consumes `address` any more; returns what ends that. */
  watch(address: string, onGone: () => void): () => void;
  /** Resolves when what was sent is on its way, and those who are there know of the consumers here. */
  flush(): Promise<void>;
  /** As `flush`, and when all has come here that was on its way then. */
  catchUp(): Promise<void>;
}

/** A bus, as whatever was attached to it sees it. */
interface AttachedOutlet {
  /** A message for the consumers that are here. */
  readonly receive: (delivery: Delivery) => void;
  /** It has room again. */
  readonly drained: () => void;
  /** It is gone, with what was on its way. */
  readonly ended: () => void;
}

/** As a peer does. */
export interface Attached extends AttachedOutlet {
  /** The peer has so many consumers of `address` from now on. */
  readonly heard: (address: string, consumers: number) => void;
  readonly noted: (note: HandOffNote) => void;
}

/** As an uplink does. */
export interface AttachedUplink extends AttachedOutlet {
  /** A message that it took, and that nobody waits for, has found no consumer. */
  readonly undelivered: () => void;
}
