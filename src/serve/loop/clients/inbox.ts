// The source of a loop's connections: the listener thread of its process (native/), or the listening sockets
// themselves (portable/).

import type { FileThread } from '../../../http-apps/index.js';
import { NativeInbox } from '../../native/inbox.js';
import { PortableInbox } from '../../portable/inbox.js';
import type { Row } from '../../shared/board.js';
import type { Listenable } from '../../shared/socket-handle.js';
import type { LoopSystem } from '../../tickets.js';
import type { StreamHandle } from './client-handles.js';
import type { IdleConnections } from './idle-connections.js';

/** A connection: its descriptor, or Node's handle of it. The receiver takes it over. */
export type Client = number | StreamHandle;

export interface Inbox {
  readonly row: Row;
  readonly idle: IdleConnections;
  /** Takes connections from now on. Throws the system's error. */
  begin(): void;
  /**
   * Prepares a socket from which the loop takes connections once its row lists it. Takes `socket` over. Returns
   * 0, or the system's error as libuv's negative number.
   */
  listen(number: number, socket: Listenable | undefined, backlog: number): number;
  /** Closes a socket on which nothing will listen. */
  discard(socket: Listenable | undefined): void;
  /** Applies the loop's row after a change: its sockets, and whether it drains. */
  wake(): void;
  /** True: waiting for connections keeps the event loop alive. */
  hold(isHeld: boolean): void;
  /** True: no connection of this socket, which the row does not list, is in transit any more. */
  isDoneWith(number: number): boolean;
  /** Closes the inbox, unless a connection waits in it (false); for a loop that drains. */
  tryLeave(): boolean;
  close(): void;
  /** Access to the thread for files; `undefined`: there is none. */
  readonly files: FileThread | undefined;
}

/**
 * Called with each connection, the number of its socket, and the time since which it waits for a loop of this
 * process (by `clockMs`; 0: unknown). It is counted as open in the row.
 */
export type OnClient = (number: number, client: Client, sinceMs: number) => void;

/** Throws `NATIVE_MISSING`. */
export function openInbox(
  system: LoopSystem,
  process: number,
  index: number,
  onClient: OnClient,
): Inbox {
  return system.kind === 'native'
    ? new NativeInbox(system.acceptorKey, process, index, onClient)
    : new PortableInbox(system.board, process, index, onClient);
}
