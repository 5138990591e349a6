// A shared worker as whoever started it sees it: its process, the wire to it, and the places in it.
// Not here: who is given a place in which worker (serve/workers.ts).

import { fewestBlockingThreads } from '../blocking-pool/index.js';
import type { Wire } from '../channels/index.js';
import { CodedError } from '../errors.js';
import { defer } from '../internal/index.js';
import { sharedEntryFile } from './entry-file.js';
import {
  parseFromSharedWorker,
  type SharedWorkerTicket,
  type ToSharedWorker,
} from './shared-protocol.js';
import type { WorkerExit } from './types.js';
import { WiredProcess, type WireTicket } from './wired-process.js';

export interface SharedProcessOptions {
  /** Its number in `Turns`. */
  readonly worker: number;
  readonly turnsFd: number;
  readonly uid: number | undefined;
  readonly gid: number | undefined;
  /** It may go on for so long when this process has ended, in ms. */
  readonly orphanMs: number;
  /** A place is empty. */
  readonly onParted: (place: number) => void;
  /** Called once, last of all. */
  readonly onExit: (exit: WorkerExit) => void;
}

export class SharedProcess {
  readonly worker: number;
  readonly pid: number;
  readonly exited: Promise<void>;
  readonly #process: WiredProcess<ToSharedWorker>;

  /** Throws `WORKER_START_FAILED`, `NATIVE_REFUSED`. */
  constructor({ worker, turnsFd, uid, gid, orphanMs, onParted, onExit }: SharedProcessOptions) {
    this.worker = worker;
    const ticket = (wire: WireTicket, [turns = -1]: readonly number[]): SharedWorkerTicket => {
      return {
        kind: 'shared-worker',
        parentPid: process.pid,
        orphanMs,
        worker,
        ...wire,
        turnsFd: turns,
      };
    };
    this.#process = new WiredProcess({
      entry: sharedEntryFile(),
      fds: [turnsFd],
      ticket,
      uid,
      gid,
      blockingThreads: fewestBlockingThreads,
    });
    const { child, wire } = this.#process;
    child.on('error', () => {}); // of one that did not start: thrown here
    if (child.pid === undefined) {
      throw new CodedError('WORKER_START_FAILED', 'the system has started no shared worker');
    }
    this.pid = child.pid;
    child.unref();
    wire.onMessage = (message) => this.#receive(message, onParted);
    wire.onClose = (error) => {
      if (error !== undefined) this.kill();
    };
    wire.unref();
    const ended = defer<void>();
    this.exited = ended.promise;
    child.once('exit', (exitCode, signal) => {
      onExit({ exitCode, signal, error: undefined });
      ended.resolve();
    });
  }

  /** Tasks may write anything to its descriptors: the worker ends, not whoever started it. */
  #receive(message: unknown, onParted: (place: number) => void): void {
    let place: number;
    try {
      place = parseFromSharedWorker(message).place;
    } catch {
      this.kill();
      return;
    }
    onParted(place);
  }

  /**
   * Seats a parent of the process `pid`; `fds` are those of its channel (`channelFds`), and stay the
   * caller's. Throws `NATIVE_REFUSED` when the worker does not take them; then nothing was done.
   */
  join(place: number, pid: number, fds: readonly number[]): void {
    this.#process.sendDescriptors(fds);
    this.#wire.post({ type: 'join', place, pid });
  }

  /** Gives a place back: of a parent that is gone, or waits no longer. `onParted` follows. */
  part(place: number): void {
    this.#wire.post({ type: 'part', place });
  }

  /** Asks its parents to go elsewhere. */
  retire(): void {
    this.#wire.post({ type: 'retire' });
  }

  /** Asks it to leave once nobody has a place in it. Keeps the event loop alive until it has. */
  close(): void {
    this.#process.child.ref();
    this.#wire.close();
  }

  kill(): void {
    this.#process.child.kill('SIGKILL');
  }

  get #wire(): Wire<ToSharedWorker> {
    return this.#process.wire;
  }
}
