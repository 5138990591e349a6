// The loop of a server, as manycore's own programs in it use it: they need no listening socket, and take part
// in the start and the end of the loop. At most one in each thread.

import type { Server } from 'node:net';
import type { OnMember } from '../supervisor/mesh.js';
import type { ListenOwner } from './clients/listen-handle.js';
import type { SideThread } from './loop-threads.js';

export interface ProgramLoop {
  /** Index of the loop in its process. */
  readonly index: number;
  /** As `Member.join`. */
  join(onMember: OnMember): Promise<number>;
  /** Starts a thread beside this loop, with this program (`sideProgram`). */
  startThread(entry: URL, data: unknown): SideThread;
  /** Reports that the program serves, without listening. */
  ready(): void;
  /** Reports a failure: the process ends, or is replaced. */
  failed(error: unknown): void;
  /** Sets the program's functions for this loop. To be called once. */
  attend(program: LoopProgram): void;
  /**
   * Prepares the close of a server: it gets no new connection, and ends its connections with their next
   * answer. Resolves when no connection is in transit to it any more.
   */
  quiet(server: Server): Promise<void>;
}

/** A program of manycore, as its loop uses it. */
export interface LoopProgram {
  /** Owner of a server, called in its `listen()`, when several parts of the program share ports. */
  ownerOf(server: Server): ListenOwner | undefined;
  /** Called once when the loop is to end, within `deadlineMs`; it ends when the promise has resolved. */
  onDrain(deadlineMs: number): Promise<void>;
}

let isServed = false;

/** Marks this process as one of a server. */
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
