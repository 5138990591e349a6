// The thread of a server's process that answers requests for files, as the program for folders uses it
// (folders.ts). The loop of a server sets it.

import type { Socket } from 'node:net';

/** Implemented by crates/core/src/accept/files/mod.rs. */
export interface FileThread {
  /**
   * Starts it. `keepAliveSeconds`: promised to clients for an idle connection. False: this server cannot have it.
   */
  serve(keepAliveSeconds: number): boolean;
  /**
   * Adds what was sent for the target of a request. `fd` is the open file of `path`, and stays the caller's;
   * `fields`: `[name, value, …]`.
   */
  add(
    target: string,
    acceptEncoding: string,
    path: string,
    fd: number,
    fields: readonly string[],
  ): void;
  /**
   * Gives a connection back, on which the loop has answered all that it has read. False: it stays. After true the
   * caller destroys the socket, and sends nothing.
   */
  takeBack(socket: Socket): boolean;
}

let ofLoop: FileThread | undefined;

/** Sets the thread for the program of this loop. */
export function setFileThread(thread: FileThread | undefined): void {
  ofLoop = thread;
}

export function fileThread(): FileThread | undefined {
  return ofLoop;
}
