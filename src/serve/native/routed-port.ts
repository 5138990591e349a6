// A port behind a thread that selects the app, or the loop, for each client (crates/core/src/accept/router.rs), and its
// transfer to a successor. That has such a thread, too, which accepts nothing until the successor serves: before, it
// would answer clients of apps that still start. The thread here then passes on what it has accepted.

import { setTimeout as wait } from 'node:timers/promises';
import {
  callNative,
  type NativeDescriptors,
  type NativeRouter,
  requireNative,
} from '../../native.js';
import type { BoundAddress } from '../protocol.js';
import type { HandedOut } from '../supervisor/sockets.js';

/** A listening socket. */
export interface OpenedSocket {
  readonly address: BoundAddress;
  /** To be closed by the receiver. */
  readonly fd: number;
  readonly isInherited: boolean;
  readonly ticketKeys: string | undefined;
  /** Source of clients that a predecessor has accepted; to be closed by the receiver. */
  readonly waitingFd: number | undefined;
  /** Calls `callback` once no predecessor serves beside this process. */
  onceAlone(callback: () => void): void;
}

/** Time between two checks of a hand-over, in ms. */
const checkEveryMs = 5;

export class RoutedPort {
  readonly address: BoundAddress;
  readonly router: NativeRouter;
  readonly ticketKeys: string | undefined;
  readonly #isInherited: boolean;
  readonly #descriptors: NativeDescriptors;
  readonly #listener: number;
  /** Both ends of the socket over which a successor gets waiting clients; empty before the first upgrade. */
  #pair: readonly number[] = [];
  #handedOver: Promise<void> | undefined;

  /** Takes the descriptors over. Throws `NATIVE_REFUSED`. */
  constructor({ address, fd, isInherited, ticketKeys, waitingFd, onceAlone }: OpenedSocket) {
    this.address = address;
    this.ticketKeys = ticketKeys;
    this.#isInherited = isInherited;
    this.#descriptors = new (requireNative().NativeDescriptors)();
    this.#listener = callNative(() => this.#descriptors.duplicate(fd));
    this.router = callNative(() => new (requireNative().NativeRouter)(fd, waitingFd ?? -1));
    onceAlone(() => this.router.accept());
  }

  /** Returns the same for each app of the port. */
  handOut(): HandedOut {
    // A successor that did not start has read nothing: the next one gets the same socket.
    if (this.#pair.length === 0)
      this.#pair = callNative(() => this.#descriptors.createSocketPair());
    const waitingFd = this.#pair[1];
    return { fds: [this.#listener], waitingFd, isShared: false, isInherited: this.#isInherited };
  }

  /** See `OpenSocket.handOver`; the first app of the port hands it over for all. */
  handOver(): Promise<void> {
    this.#handedOver ??= this.#handOver();
    return this.#handedOver;
  }

  async #handOver(): Promise<void> {
    const [near] = this.#pair;
    if (near === undefined) return; // opened since: no successor has it
    callNative(() => this.router.handOver(this.#descriptors.release(near)));
    this.#descriptors.closeAll();
    while (!this.router.hasEnded()) await wait(checkEveryMs);
  }

  close(): void {
    this.#descriptors.closeAll();
    if (this.#handedOver === undefined) this.router.close();
    else void this.#handedOver.finally(() => this.router.close());
  }
}
