// The listening sockets that one process accepts from, and the loops that listen on each.

import { callNative, type NativeAcceptor, type NativeDescriptors } from '../../native.js';

export class ProcessSockets<Loop> {
  readonly #acceptor: NativeAcceptor;
  readonly #descriptors: NativeDescriptors;
  readonly #controlSocketFd: number;
  /** Listening loops, by socket number. */
  readonly #sockets = new Map<number, Set<Loop>>();

  /** Descriptors arrive over the control socket. */
  constructor(acceptor: NativeAcceptor, descriptors: NativeDescriptors, controlSocketFd: number) {
    this.#acceptor = acceptor;
    this.#descriptors = descriptors;
    this.#controlSocketFd = controlSocketFd;
  }

  /**
   * Adds a loop that listens on this socket; `undefined`: that loop has ended. The supervisor sends each
   * socket's descriptor once, ahead of the first answer with its number. Throws `NATIVE_REFUSED`.
   */
  take(number: number, loop: Loop | undefined): void {
    let loops = this.#sockets.get(number);
    if (loops === undefined) {
      loops = new Set();
      this.#sockets.set(number, loops);
      this.#receive(number);
    }
    if (loop !== undefined) loops.add(loop);
  }

  /** Adds one more socket with this number, of a process that has ended. Throws `NATIVE_REFUSED`. */
  adopt(number: number): void {
    this.#receive(number);
    if (!this.#sockets.has(number)) this.#acceptor.removeSocket(number); // dropped meanwhile
  }

  #receive(number: number): void {
    const [fd = -1] = callNative(() => this.#descriptors.receive(this.#controlSocketFd));
    this.#acceptor.addSocket(number, this.#descriptors.release(fd));
  }

  /** Removes a loop from this socket, or from all. */
  forget(loop: Loop, number?: number): void {
    if (number !== undefined) this.#sockets.get(number)?.delete(loop);
    else for (const loops of this.#sockets.values()) loops.delete(loop);
  }

  /** Closes sockets on which no loop listens; returns their numbers. */
  dropUnused(): number[] {
    const unused = [...this.#sockets].flatMap(([number, loops]) => (loops.size > 0 ? [] : number));
    for (const number of unused) {
      this.#sockets.delete(number);
      this.#acceptor.removeSocket(number);
    }
    return unused;
  }

  /** Stops accepting. */
  leave(): void {
    for (const number of this.#sockets.keys()) this.#acceptor.removeSocket(number);
  }
}
