// The ways of a message to its consumers: in this loop (local.ts), over a channel to another loop (link.ts),
// over NATS to other machines (cluster/bus/peer.ts). The bus chooses one for each message (receivers.ts),
// whatever its kind is. Not here: the transports themselves.

import type { Delivery } from '../delivery/message.js';
import type { HandOffNote } from '../protocol.js';
import type { Advertiser } from '../services/micro.js';

/**
 * 1. Messages to one consumer arrive in the order of `deliver`.
 * 2. The body was read when `deliver` returns; each consumer gets a copy of its own.
 * 3. `deliver` throws `BUS_FULL`, or the error of a body that cannot travel: then nothing was sent.
 * 4. A waiter is settled once: with the reply and its headers, with the failure of the consumer, or with
 *    `BUS_NO_HANDLERS`.
 * 5. A reply may have a waiter itself.
 * 6. A reply that cannot travel throws where it is given, and its waiter still waits.
 * 7. A waiter that has given up drops its reply; a waiter of that reply gets `BUS_NO_HANDLERS`.
 * 8. `hasRoom` is false while messages wait; the bus is notified when it has room again.
 * 9. A publication goes to each consumer once, and has no waiter.
 * 10. Codecs and interceptors see the same on every transport.
 * 11. When a channel ends, its waiters are settled with `BUS_CONSUMER_LOST`.
 * 12. A stream that the accepting side refuses, or whose handler throws, ends with that error, and nothing else does.
 *
 * `test/conformance/transport.ts` holds it.
 */
export interface Transport {
  deliver(message: Delivery): void;
  readonly hasRoom: boolean;
}

/** A transport that leaves this loop. All its methods keep one order. */
export interface RemoteTransport extends Transport {
  /** Announces that so many consumers of `address` are here from now on. */
  announce(address: string, consumers: number): void;
}

/** The bus of another loop, as this one uses it. */
export interface Peer extends RemoteTransport {
  /** Sends a notice of a consumer that moves from loop to loop. */
  note(note: HandOffNote): void;
}

/**
 * Result of a watch. `gone`: a consumer was there, and is no more. `absent`: none was there. `unknown`: the
 * connection was lost.
 */
export type Found = 'gone' | 'absent' | 'unknown';

/** The way to other machines, as a bus uses it: it takes every message, whatever is connected there. */
export interface Uplink extends RemoteTransport, Advertiser {
  /** Throws `OPTION_INVALID` for an address that cannot go this way. */
  check(address: string): void;
  /**
   * Calls `onGone` when no consumer of `address` is left there, with whether one has answered since the watch
   * began; returns a function that stops watching.
   */
  watch(address: string, onGone: (found: Found, hasAnswered: boolean) => void): () => void;
  /** Resolves when sent messages are on their way, and the servers have the consumers here. */
  flush(): Promise<void>;
  /** Resolves as `flush`, and once everything has arrived that was on its way here then. */
  catchUp(): Promise<void>;
}

/** A bus, as a remote transport calls it. */
interface AttachedTransport {
  /** Takes a message for the consumers that are here. */
  readonly receive: (message: Delivery) => void;
  /** The transport has room again. */
  readonly drained: () => void;
  /** The transport is gone, with what was on its way. */
  readonly ended: () => void;
}

/** A bus, as a peer calls it. */
export interface Attached extends AttachedTransport {
  /** The peer has so many consumers of `address` from now on. */
  readonly interest: (address: string, consumers: number) => void;
  readonly noted: (note: HandOffNote) => void;
  /** The peer does not answer at present, or answers again. */
  readonly blocked: (isBlocked: boolean) => void;
  /** `hasLeft`: this bus has closed the connection, and the peer may live on. */
  readonly ended: (hasLeft?: boolean) => void;
}

/** A bus, as an uplink calls it. */
export interface AttachedUplink extends AttachedTransport {
  /** A message that the uplink took, and that no requester waits for, has found no consumer. */
  readonly undelivered: () => void;
}
