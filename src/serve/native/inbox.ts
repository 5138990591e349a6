// The inbox of a loop at the listener thread of its process, which accepts for all loops and wakes this one.

import type { FileThread } from '../../http-apps/index.js';
import { callNative, type NativeLoopInbox, requireNative } from '../../native.js';
import { acceptedFdOf } from '../loop/clients/client-handles.js';
import { IdleConnections } from '../loop/clients/idle-connections.js';
import type { Inbox, OnClient } from '../loop/clients/inbox.js';
import { Row } from '../shared/board.js';

const entryWords = 3;

export class NativeInbox implements Inbox {
  readonly row: Row;
  readonly idle: IdleConnections;
  readonly files: FileThread;
  readonly #native: NativeLoopInbox;
  readonly #batch: Uint32Array<ArrayBuffer>;
  readonly #onClient: OnClient;

  /** Throws `NATIVE_MISSING`. */
  constructor(acceptorKey: number, process: number, index: number, onClient: OnClient) {
    const { NativeLoopInbox } = requireNative();
    this.#onClient = onClient;
    this.#native = callNative(() => new NativeLoopInbox(acceptorKey, index, this.#deliver));
    this.#batch = new Uint32Array(this.#native.batch());
    this.idle = new IdleConnections(this.#native.idleWords(), () => this.#native.wake());
    this.files = fileThread(this.#native);
    this.row = new Row(this.#native.board(), process, index);
  }

  begin(): void {}

  /** The listener thread accepts: the supervisor has sent it the socket. */
  listen(): number {
    return 0;
  }

  discard(): void {}

  wake(): void {
    this.#native.wake();
  }

  hold(isHeld: boolean): void {
    this.#native.hold(isHeld);
  }

  isDoneWith(number: number): boolean {
    return this.#native.isDoneWith(number);
  }

  tryLeave(): boolean {
    return this.#native.tryLeave();
  }

  close(): void {
    this.#native.close();
  }

  readonly #deliver = (): void => {
    const count = this.#batch[0] ?? 0;
    // Copied first: an error in a connection's listener must not lose the others.
    const entries = this.#batch.slice(1, 1 + count * entryWords);
    this.#batch[0] = 0;
    for (let at = 0; at < entries.length; at += entryWords) {
      const [number = 0, fd = -1, sinceMs = 0] = entries.subarray(at, at + entryWords);
      this.#onClient(number, fd, sinceMs);
    }
  };
}

function fileThread(native: NativeLoopInbox): FileThread {
  const bytes = (text: string): Buffer => Buffer.from(text, 'latin1'); // as Node has decoded it
  return {
    serve: (keepAliveSeconds) => callNative(() => native.serveFiles(keepAliveSeconds)),
    add: (target, acceptEncoding, path, fd, fields) => {
      callNative(() => native.addFile(bytes(target), bytes(acceptEncoding), path, fd, fields));
    },
    takeBack: (socket) => {
      const fd = acceptedFdOf(socket);
      return fd >= 0 && callNative(() => native.takeBack(fd, socket.bytesRead));
    },
  };
}
