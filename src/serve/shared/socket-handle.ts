// A listening socket as Node itself has it: its `TCP` or `Pipe` object, which Node also passes to child processes.

import type { StreamHandle } from '../loop/clients/client-handles.js';

export interface SocketHandle {
  /** -1 on Windows. */
  readonly fd: number;
  /** Set by the one that listens. */
  onconnection: ((status: number, client: StreamHandle | undefined) => void) | undefined;
  /** Returns 0, or the system's error as libuv's negative number. */
  listen(backlog: number): number;
  /** TCP only. Returns as `listen`. */
  getsockname?(out: object): number;
  ref(): void;
  unref(): void;
  close(): void;
}

/** A listening socket on its way to the one that accepts from it. */
export type Listenable =
  | { readonly fd: number; readonly handle?: undefined }
  | { readonly handle: SocketHandle };
