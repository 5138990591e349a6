// The leases of one loop in the workers of its server: what its pool has instead of workers of its own.
// Not here: which worker a lease is granted in (shared-workers.ts).

import { callNative, requireNative } from '../../native.js';
import {
  ActiveLeases,
  SharedLease,
  type SharedWorkers,
  type WorkerExit,
} from '../../worker/index.js';
import type { FromLoop, ToLoop } from '../protocol.js';
import { dupFd, dupFds } from '../shared/dup-fds.js';

export interface LeasesOptions {
  /** Maximum number of workers. */
  readonly count: number;
  /** The memory of `ActiveLeases`; stays the caller's. */
  readonly activeLeasesFd: number;
  /** Sends to the process. */
  readonly post: (message: FromLoop) => void;
}

type LeaseMessage = Extract<ToLoop, { type: 'granted' | 'leaseEnded' }>;

export class Leases implements SharedWorkers {
  readonly count: number;
  isOver = false;
  readonly #post: (message: FromLoop) => void;
  readonly #activeLeases: ActiveLeases;
  /** By request. */
  readonly #leases = new Map<number, SharedLease>();
  #requests = 0;

  constructor({ count, activeLeasesFd, post }: LeasesOptions) {
    this.count = count;
    this.#post = post;
    const { NativeBoard } = requireNative();
    this.#activeLeases = new ActiveLeases(
      callNative(() => NativeBoard.open(dupFd(activeLeasesFd))),
    );
  }

  acquire(fds: readonly number[]): SharedLease {
    this.#requests += 1;
    const request = this.#requests;
    const copies = dupFds(fds);
    const lease = new SharedLease(this.#activeLeases, () =>
      this.#post({ type: 'release', request }),
    );
    this.#leases.set(request, lease);
    this.#post({ type: 'acquire', request, fds: copies });
    return lease;
  }

  receive(message: LeaseMessage): void {
    const lease = this.#leases.get(message.request);
    if (message.type === 'granted') {
      lease?.grant(message.lease);
      return;
    }
    this.#leases.delete(message.request);
    lease?.ended(exitOf(message));
  }
}

function exitOf({ exitCode, signal, message }: LeaseMessage & { type: 'leaseEnded' }): WorkerExit {
  return { exitCode, signal, error: message === undefined ? undefined : new Error(message) };
}
