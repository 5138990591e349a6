// What a bus and its peers, the buses of other loops, say to each other. All methods keep one order: what
// is told first is heard first. Not here: how it travels.

import type { Delivery } from './message.js';
import type { HandoverNote } from './protocol.js';

/** Another loop's bus, as this one sees it. */
export interface Peer {
  /** So many consumers of `address` are here from now on. */
  tell(address: string, consumers: number): void;
  /**
   * For its consumers; has taken the body when it returns. Throws `BUS_FULL`, or for a body that cannot
   * travel: then nothing was sent. Whoever waits for an answer hears one, also when the peer ends before.
   */
  take(delivery: Delivery): void;
  /** What is to be known of consumers that go from loop to loop. */
  note(note: HandoverNote): void;
  /** False while something that it took waits; `Attached.drained` follows. */
  readonly hasRoom: boolean;
}

/** A bus, as the peer that was attached to it sees it. */
export interface Attached {
  /** The peer has so many consumers of `address` from now on. */
  readonly heard: (address: string, consumers: number) => void;
  readonly noted: (note: HandoverNote) => void;
  /** A message of the peer, for the consumers that are here. */
  readonly receive: (delivery: Delivery) => void;
  /** It has room again. */
  readonly drained: () => void;
  /** The peer is gone, with what was on its way. */
  readonly ended: () => void;
}
