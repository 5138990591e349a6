// Descriptors over the connection of two programs (SCM_RIGHTS), below Node's own reading, which would drop them.

import type { Socket } from 'node:net';
import { CodedError } from '../../errors.js';
import { callNative, requireNative } from '../../native.js';

/** Throws `CHANNEL_UNAVAILABLE` for a connection that has ended. */
function fdOf(socket: Socket): number {
  const handle: unknown = Reflect.get(socket, '_handle');
  const fd: unknown = Reflect.get(Object(handle), 'fd');
  if (typeof fd === 'number' && fd >= 0) return fd;
  throw new CodedError('CHANNEL_UNAVAILABLE', 'the connection to another program has ended');
}

/** Sends all or none; they stay the caller's. Throws `NATIVE_REFUSED`, `CHANNEL_UNAVAILABLE`. */
export function sendDescriptors(socket: Socket, fds: readonly number[]): void {
  callNative(() => requireNative().sendDescriptors(fdOf(socket), [...fds]));
}

/** A connection that Node reads no more, until its descriptors have come. */
export class DescriptorInbox {
  readonly #descriptors = new (requireNative().NativeDescriptors)();
  readonly #fd: number;

  /** Takes the connection over. Throws `NATIVE_REFUSED`, `CHANNEL_UNAVAILABLE`. */
  constructor(socket: Socket) {
    this.#fd = callNative(() => this.#descriptors.duplicate(fdOf(socket)));
    socket.destroy(); // the other side sends nothing before it is answered
  }

  /** Returns the descriptors of the next message; `close` closes them. Throws `NATIVE_REFUSED` when there is none. */
  receive(): readonly number[] {
    return callNative(() => this.#descriptors.receive(this.#fd));
  }

  /** Gives a descriptor to the caller, which must close it. Throws `NATIVE_REFUSED` when it is not held. */
  readonly release = (fd: number): number => callNative(() => this.#descriptors.release(fd));

  get fd(): number {
    return this.#fd;
  }

  close(): void {
    this.#descriptors.closeAll();
  }
}
