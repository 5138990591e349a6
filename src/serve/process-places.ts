// What the loops of one process have in the workers of their server, as the process passes it on: questions
// go up to the supervisor with descriptors ahead of them, and what it says comes back to the loop. Not here:
// which worker that is (workers.ts), what a loop does with it (places.ts).

import { closeSync } from 'node:fs';
import { messageOf } from '../internal/index.js';
import { callNative, requireNative } from '../native.js';
import { isAlive } from '../proc/index.js';
import type { FromLoop, FromProcess, ToLoop, ToProcess } from './protocol.js';

const orphanLookMs = 500;

/** A loop that asks, with a number in this process that is not used again. */
interface Asking {
  readonly serial: number;
  readonly post: (message: ToLoop) => void;
}

interface AskedPlace<Loop> {
  readonly loop: Loop;
  /** The number that the loop gave to its question. */
  readonly request: number;
  /** The worker's process, once it is given. */
  pid: number | undefined;
}

export class ProcessPlaces<Loop extends Asking> {
  readonly #controlSocketFd: number;
  readonly #post: (message: FromProcess) => void;
  /** By the numbers that the supervisor gets. */
  readonly #places = new Map<number, AskedPlace<Loop>>();
  #requests = 0;
  #isOrphan = false;

  constructor(controlSocketFd: number, post: (message: FromProcess) => void) {
    this.#controlSocketFd = controlSocketFd;
    this.#post = post;
  }

  /** The descriptors are closed; `undefined`: the loop has ended meanwhile. */
  ask(loop: Loop | undefined, { request, fds }: Extract<FromLoop, { type: 'join' }>): void {
    try {
      if (loop === undefined) return;
      if (this.#isOrphan) throw new Error('the supervisor of the server is gone');
      callNative(() => requireNative().sendDescriptors(this.#controlSocketFd, [...fds]));
      this.#requests += 1;
      this.#places.set(this.#requests, { loop, request, pid: undefined });
      this.#post({ type: 'join', loop: loop.serial, request: this.#requests });
    } catch (error) {
      const message = messageOf(error);
      loop?.post({ type: 'unplaced', request, exitCode: null, signal: null, message });
    } finally {
      for (const fd of fds) closeSync(fd);
    }
  }

  /** The loop gives back a place. */
  part(loop: Loop, request: number): void {
    for (const [number, place] of this.#places) {
      if (place.loop === loop && place.request === request) {
        this.#post({ type: 'part', request: number });
      }
    }
  }

  /** What the supervisor says goes to the loop that has asked, if that is still there. */
  tell(message: Extract<ToProcess, { type: 'placed' | 'unplaced' }>): void {
    const place = this.#places.get(message.request);
    if (place === undefined) return;
    if (message.type === 'placed') place.pid = message.given.pid;
    else this.#places.delete(message.request);
    place.loop.post({ ...message, request: place.request });
  }

  /** It has ended. */
  forget(loop: Loop): void {
    for (const [number, place] of this.#places) {
      if (place.loop === loop) this.#places.delete(number);
    }
  }

  /** The supervisor is gone: nobody else sees when a worker ends. */
  watch(): void {
    this.#isOrphan = true;
    const look = (): void => {
      for (const [request, { pid }] of this.#places) {
        if (pid !== undefined && isAlive(pid)) continue;
        this.tell({ type: 'unplaced', request, exitCode: null, signal: null });
      }
    };
    look();
    setInterval(look, orphanLookMs).unref();
  }
}
