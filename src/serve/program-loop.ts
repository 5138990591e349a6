// The loop of a server as a program of ours that runs in it sees it: it needs no listening socket, and has
// a word in how the loop begins and ends. There is one in each thread, or none.

import type { Server } from 'node:net';
import type { ListenOwner } from './listen.js';
import type { SideThread } from './loop-threads.js';
import type { OnMember } from './mesh.js';

export interface ProgramLoop {
  /** Its number in its process. */
  readonly index: number;
  /** As `Member.join`. */
  join(onMember: OnMember): Promise<number>;
  /** A thread beside this loop, with this program (`sideProgram`). */
  startThread(entry: URL, data: unknown): SideThread;
  /** It serves, without listening. */
  ready(): void;
  /** It cannot: its process ends, or is replaced. */
  failed(error: unknown): void;
  /** Called in the `listen()` of a server: whose it is, where several parts of the program share ports. */
  ownerOf: (server: Server) => ListenOwner | undefined;
  /**
   * A server is to be closed: it gets no new connection, and ends those that it has with their next answer.
   * Resolves when none is on its way to it any more.
   */
  quiet(server: Server): Promise<void>;
  /** Called once when the loop is to leave, within so long; it does when this has resolved. */
  onDrain: (deadlineMs: number) => Promise<void>;
}

let isServed = false;

/** This process is one of a server. */
export function markAsServed(): void {
  isServed = true;
}

export function isServedProcess(): boolean {
  return isServed;
}

let ofThread: ProgramLoop | undefined;

export function setProgramLoop(loop: ProgramLoop): void {
  ofThread = loop;
}

export function programLoop(): ProgramLoop | undefined {
  return ofThread;
}
