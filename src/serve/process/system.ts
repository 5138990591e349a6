// Needs of a process of a server from the system it runs on: with the native core (native/), and by Node alone
// (portable/).

import { NativeProcessSystem } from '../native/process-system.js';
import { PortableProcessSystem } from '../portable/process-system.js';
import type { Envelope, ToLoop } from '../protocol.js';
import type { Link, LinkListener } from '../shared/link.js';
import type { LoopSystem, ProcessTicket } from '../tickets.js';

export interface ProcessSystem {
  /** The scoreboard. */
  readonly board: ArrayBufferLike;
  /** The link to the supervisor. */
  readonly up: Link & { unref(): void };
  /** The part of its loops' tickets. */
  readonly ofLoops: LoopSystem;
  /** True: each loop listens itself; false: a listener thread accepts for all. */
  readonly loopsListen: boolean;
  /** Makes the listener thread accept from one more socket, whose descriptor it takes over. */
  addSocket(number: number, fd: number): void;
  removeSocket(number: number): void;
  /** Applies the rows of its loops after a change. */
  wake(): void;
  /** Returns a message of the supervisor as a thread of this process can get it. */
  forThread(envelope: Envelope<ToLoop>): Envelope<ToLoop>;
  /** Ends the listener thread; the loops have ended. */
  close(): void;
}

/** Throws `NATIVE_MISSING`, `NATIVE_REFUSED`. */
export function openSystem(ticket: ProcessTicket, listener: Required<LinkListener>): ProcessSystem {
  const { system } = ticket;
  return system.kind === 'native'
    ? new NativeProcessSystem(ticket, system, listener)
    : new PortableProcessSystem(ticket, system, listener);
}
