// The leases of one loop in the workers of its server: what its pool has instead of workers of its own.
// Not here: which worker a lease is granted in (shared-workers.ts).

import { setInterval } from '../../lib/index.js';
import { callNative, requireNative } from '../../native.js';
import { isAlive } from '../../proc/index.js';
import {
  ActiveLeases,
  SharedLease,
  type SharedWorkers,
  type WorkerExit,
} from '../../worker/index.js';
import type { FromLoop, LoopMessage } from '../protocol.js';
import { dupFd, dupFds } from '../shared/dup-fds.js';
import type { Link } from '../shared/link.js';

/** Interval between checks for dead workers once the supervisor is gone, in ms. */
const orphanPollMs = 500;

export interface LeasesOptions {
  /** Maximum number of workers. */
  readonly count: number;
  /** The memory of `ActiveLeases`; stays the caller's. */
  readonly activeLeasesFd: number;
  readonly up: Link<FromLoop>;
}

type LeaseMessage = Extract<LoopMessage, { type: 'granted' | 'leaseEnded' | 'returned' }>;

export class Leases implements SharedWorkers {
  readonly count: number;
  isOver = false;
  readonly #up: Link<FromLoop>;
  readonly #activeLeases: ActiveLeases;
  /** By id of the request. */
  readonly #leases = new Map<number, SharedLease>();
  #lastId = 0;

  constructor({ count, activeLeasesFd, up }: LeasesOptions) {
    this.count = count;
    this.#up = up;
    const { NativeBoard } = requireNative();
    this.#activeLeases = new ActiveLeases(
      callNative(() => NativeBoard.open(dupFd(activeLeasesFd))),
    );
  }

  acquire(fds: readonly number[]): SharedLease {
    this.#lastId += 1;
    const id = this.#lastId;
    const lease = new SharedLease(this.#activeLeases, () =>
      this.#up.post({ id, body: { type: 'release' } }),
    );
    this.#up.post({ id, body: { type: 'acquire' }, fds: dupFds(fds) });
    this.#leases.set(id, lease);
    return lease;
  }

  receive(message: LeaseMessage): void {
    if (message.type === 'granted') this.#leases.get(message.id)?.grant(message.lease);
    else this.#end(message.id, exitOf(message));
  }

  #end(id: number, exit: WorkerExit): void {
    const lease = this.#leases.get(id);
    this.#leases.delete(id);
    lease?.ended(exit);
  }

  /** Polls workers from now on: with the supervisor gone, nothing else reports their end. */
  orphaned(): void {
    this.isOver = true;
    const poll = (): void => {
      for (const [id, { pid }] of this.#leases) {
        if (pid === undefined || !isAlive(pid)) this.#end(id, unknownExit);
      }
    };
    poll();
    setInterval(poll, orphanPollMs).unref();
  }
}

const unknownExit: WorkerExit = { exitCode: null, signal: null, error: undefined };

function exitOf(message: Exclude<LeaseMessage, { type: 'granted' }>): WorkerExit {
  const { exitCode, signal } = message.type === 'returned' ? unknownExit : message;
  const reason = message.message;
  return { exitCode, signal, error: reason === undefined ? undefined : new Error(reason) };
}
