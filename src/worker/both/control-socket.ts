// One end of a control socket: descriptors over a Unix socket beside a wire between two processes (SCM_RIGHTS).
// Descriptors of one message go together, ahead of it.

import { closeSync } from 'node:fs';
import { callNative, type NativeDescriptors, requireNative } from '../../native.js';

export class ControlSocket {
  readonly #descriptors: NativeDescriptors;
  /** -1 once it is closed: the number is used again. */
  #fd: number;

  /** Takes `fd` over, for a duplicate that child programs do not inherit. Throws `NATIVE_REFUSED`. */
  constructor(fd: number) {
    this.#descriptors = new (requireNative().NativeDescriptors)();
    try {
      this.#fd = callNative(() => this.#descriptors.duplicate(fd));
    } finally {
      closeSync(fd);
    }
  }

  /** Sends all or none; they stay the caller's. Throws `NATIVE_REFUSED` when the peer does not take them. */
  send(fds: readonly number[]): readonly number[] {
    callNative(() => requireNative().sendDescriptors(this.#fd, [...fds]));
    return fds;
  }

  /** Receives those of the next message, for the caller to close. Throws `NATIVE_REFUSED` when there are none. */
  receive(): readonly number[] {
    const received = callNative(() => this.#descriptors.receive(this.#fd));
    return received.map((fd) => this.#descriptors.release(fd));
  }

  close(): void {
    this.#fd = -1;
    this.#descriptors.closeAll();
  }
}
