// What the loops of one process and the others say of the channels between them, as the process passes it
// on: offers go up to the supervisor with descriptors ahead of them, and those of others come down to their
// loop. Not here: who is there (mesh.ts), what a loop does with it (member.ts).

import { closeSync } from 'node:fs';
import { callNative, type NativeDescriptors, requireNative } from '../native.js';
import type { FromLoop, FromProcess, ToLoop, ToProcess } from './protocol.js';

/** With a number in this process that is not used again. */
export interface MeshLoop {
  readonly serial: number;
  readonly post: (message: ToLoop) => void;
}

type FromMember = Extract<FromLoop, { type: 'attend' | 'introduce' }>;
type ToMember = Extract<ToProcess, { type: 'members' | 'introduced' | 'unreachable' | 'parted' }>;

export class ProcessMesh<Loop extends MeshLoop> {
  readonly #descriptors: NativeDescriptors;
  readonly #controlSocketFd: number;
  /** Those that have not ended. */
  readonly #loops: ReadonlySet<Loop>;
  readonly #post: (message: FromProcess) => void;

  constructor(
    descriptors: NativeDescriptors,
    controlSocketFd: number,
    loops: ReadonlySet<Loop>,
    post: (message: FromProcess) => void,
  ) {
    this.#descriptors = descriptors;
    this.#controlSocketFd = controlSocketFd;
    this.#loops = loops;
    this.#post = post;
  }

  /** Of a loop; the descriptors are closed. */
  hear(loop: Loop, message: FromMember): void {
    const { serial } = loop;
    if (message.type === 'attend') {
      this.#post({ type: 'attend', loop: serial });
      return;
    }
    const { to, fds } = message;
    try {
      if (!this.#loops.has(loop)) return;
      callNative(() => requireNative().sendDescriptors(this.#controlSocketFd, [...fds]));
      this.#post({ type: 'introduce', loop: serial, to });
    } catch {
      loop.post({ type: 'unreachable', id: to }); // the supervisor is gone, or has no room
    } finally {
      for (const fd of fds) closeSync(fd);
    }
  }

  /** Of the supervisor. Throws `NATIVE_REFUSED` without a descriptor left. */
  tell(message: ToMember): void {
    if (message.type === 'parted') {
      for (const loop of this.#loops) loop.post(message);
      return;
    }
    const loop = [...this.#loops].find(({ serial }) => serial === message.loop);
    if (message.type === 'unreachable') {
      loop?.post(message);
      return;
    }
    const received = callNative(() => this.#descriptors.receive(this.#controlSocketFd));
    const fds = received.map((fd) => this.#descriptors.release(fd));
    if (loop === undefined) for (const fd of fds) closeSync(fd);
    else loop.post({ ...message, fds });
  }
}
