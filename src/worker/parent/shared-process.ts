// A shared worker as the supervisor that started it sees it: its process, the wire to it, and its leases.
// Not here: which worker a lease is granted in (serve/supervisor/shared-workers.ts).

import { minBlockingThreads } from '../../blocking-pool/index.js';
import { Wire } from '../../channels/index.js';
import { CodedError } from '../../errors.js';
import { defer } from '../../lib/index.js';
import {
  parseFromSharedWorker,
  type SharedWorkerTicket,
  type ToSharedWorker,
} from '../both/shared-worker-protocol.js';
import type { WorkerExit } from '../types.js';
import { sharedEntryFile } from './entry-file.js';
import { type Inherited, WiredProcess, type WireTicket } from './wired-process.js';

export interface SharedProcessOptions {
  /** The worker's number in `ActiveLeases`. */
  readonly number: number;
  readonly activeLeasesFd: number;
  readonly uid: number | undefined;
  readonly gid: number | undefined;
  readonly inherited: Inherited | undefined;
  /** Maximum time to go on after the end of this process, in ms. */
  readonly orphanMs: number;
  /** Called when a lease has ended. */
  readonly onReleased: (lease: number) => void;
  /** Called once, last of all. */
  readonly onExit: (exit: WorkerExit) => void;
}

export class SharedProcess {
  readonly number: number;
  readonly pid: number;
  readonly exited: Promise<void>;
  readonly #process: WiredProcess<Wire<ToSharedWorker>>;

  /** Throws `WORKER_START_FAILED`, `NATIVE_REFUSED`. */
  constructor({
    number,
    activeLeasesFd,
    uid,
    gid,
    inherited,
    orphanMs,
    onReleased,
    onExit,
  }: SharedProcessOptions) {
    this.number = number;
    const ticket = (wire: WireTicket, [leases = -1]: readonly number[]): SharedWorkerTicket => {
      return {
        kind: 'shared-worker',
        parentPid: process.pid,
        orphanMs,
        worker: number,
        ...wire,
        activeLeasesFd: leases,
      };
    };
    this.#process = new WiredProcess({
      entry: sharedEntryFile(),
      fds: [activeLeasesFd],
      ticket,
      open: (channel) =>
        new Wire(channel, {
          onMessage: (message) => this.#receive(message, onReleased),
          onClose: (error) => {
            if (error !== undefined) this.kill();
          },
        }),
      uid,
      gid,
      inherited,
      blockingThreads: minBlockingThreads,
    });
    const { child, end: wire } = this.#process;
    child.on('error', () => {}); // a process that did not start: thrown here
    if (child.pid === undefined) {
      throw new CodedError('WORKER_START_FAILED', 'the system has started no shared worker');
    }
    this.pid = child.pid;
    child.unref();
    wire.unref();
    const ended = defer<void>();
    this.exited = ended.promise;
    child.once('exit', (exitCode, signal) => {
      onExit({ exitCode, signal, error: undefined });
      ended.resolve();
    });
  }

  /** Kills the worker for an invalid message: tasks may write anything to its descriptors. */
  #receive(message: unknown, onReleased: (lease: number) => void): void {
    let lease: number;
    try {
      lease = parseFromSharedWorker(message).lease;
    } catch {
      this.kill();
      return;
    }
    onReleased(lease);
  }

  /**
   * Grants a lease to a parent in the process `pid`; `fds` are those of its channel (`channelFds`), and stay
   * the caller's. Throws `NATIVE_REFUSED` when the worker does not take them; then nothing was done.
   */
  grant(lease: number, pid: number, fds: readonly number[]): void {
    this.#process.controlSocket.send(fds);
    this.#wire.post({ type: 'grant', lease, pid });
  }

  /** Ends a lease whose parent is gone, or waits no longer. `onReleased` follows. */
  release(lease: number): void {
    this.#wire.post({ type: 'release', lease });
  }

  /** Requests all parents to move to other workers. */
  retire(): void {
    this.#wire.post({ type: 'retire' });
  }

  /** Requests the worker to exit once it has no lease. Keeps the event loop alive until it has. */
  close(): void {
    this.#process.child.ref();
    this.#wire.close();
  }

  kill(): void {
    this.#process.child.kill('SIGKILL');
  }

  get #wire(): Wire<ToSharedWorker> {
    return this.#process.end;
  }
}
