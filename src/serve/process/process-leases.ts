// Leases of the loops of one process in the workers of their server, as the process forwards them: requests
// go up to the supervisor with descriptors ahead of them, and its answers come back to the loop. Not here:
// which worker a lease is granted in (shared-workers.ts), how a loop uses it (leases.ts).

import { closeSync } from 'node:fs';
import { messageOf } from '../../lib/index.js';
import { callNative, requireNative } from '../../native.js';
import { isAlive } from '../../proc/index.js';
import type { FromLoop, FromProcess, ToLoop, ToProcess } from '../protocol.js';

/** Interval between checks for dead workers once the supervisor is gone, in ms. */
const orphanPollMs = 500;

/** A loop that acquires leases, with a number in this process that is not used again. */
interface LeaseHolder {
  readonly serial: number;
  readonly post: (message: ToLoop) => void;
}

interface RequestedLease<Loop> {
  readonly loop: Loop;
  /** The loop's own number of the request. */
  readonly request: number;
  /** The worker's process, once the lease is granted. */
  pid: number | undefined;
}

export class ProcessLeases<Loop extends LeaseHolder> {
  readonly #controlSocketFd: number;
  readonly #post: (message: FromProcess) => void;
  /** By the request numbers that the supervisor gets. */
  readonly #leases = new Map<number, RequestedLease<Loop>>();
  #requests = 0;
  #isOrphan = false;

  constructor(controlSocketFd: number, post: (message: FromProcess) => void) {
    this.#controlSocketFd = controlSocketFd;
    this.#post = post;
  }

  /** Forwards a request and closes its descriptors; `undefined`: the loop has ended meanwhile. */
  acquire(loop: Loop | undefined, { request, fds }: Extract<FromLoop, { type: 'acquire' }>): void {
    try {
      if (loop === undefined) return;
      if (this.#isOrphan) throw new Error('the supervisor of the server is gone');
      callNative(() => requireNative().sendDescriptors(this.#controlSocketFd, [...fds]));
      this.#requests += 1;
      this.#leases.set(this.#requests, { loop, request, pid: undefined });
      this.#post({ type: 'acquire', loop: loop.serial, request: this.#requests });
    } catch (error) {
      const message = messageOf(error);
      loop?.post({ type: 'leaseEnded', request, exitCode: null, signal: null, message });
    } finally {
      for (const fd of fds) closeSync(fd);
    }
  }

  /** Forwards the release of a lease. */
  release(loop: Loop, request: number): void {
    for (const [number, lease] of this.#leases) {
      if (lease.loop === loop && lease.request === request) {
        this.#post({ type: 'release', request: number });
      }
    }
  }

  /** Forwards the supervisor's answer to the loop of the request, if that still exists. */
  receive(message: Extract<ToProcess, { type: 'granted' | 'leaseEnded' }>): void {
    const lease = this.#leases.get(message.request);
    if (lease === undefined) return;
    if (message.type === 'granted') lease.pid = message.lease.pid;
    else this.#leases.delete(message.request);
    lease.loop.post({ ...message, request: lease.request });
  }

  /** Drops the leases of a loop that has ended. */
  forget(loop: Loop): void {
    for (const [number, lease] of this.#leases) {
      if (lease.loop === loop) this.#leases.delete(number);
    }
  }

  /** Polls workers from now on: with the supervisor gone, nothing else reports their end. */
  watch(): void {
    this.#isOrphan = true;
    const poll = (): void => {
      for (const [request, { pid }] of this.#leases) {
        if (pid !== undefined && isAlive(pid)) continue;
        this.receive({ type: 'leaseEnded', request, exitCode: null, signal: null });
      }
    };
    poll();
    setInterval(poll, orphanPollMs).unref();
  }
}
