// Messages of the mesh between the loops of one process and the supervisor, as the process forwards them:
// offers go up with descriptors ahead of them, and offers of other loops come down. Not here: the list of
// members (mesh.ts), how a loop uses a channel (member.ts).

import { closeSync } from 'node:fs';
import { callNative, type NativeDescriptors, requireNative } from '../../native.js';
import type { FromLoop, FromProcess, ToLoop, ToProcess } from '../protocol.js';

/** A loop with a number in this process that is not used again. */
export interface MeshLoop {
  readonly serial: number;
  readonly post: (message: ToLoop) => void;
}

type FromMember = Extract<FromLoop, { type: 'join' | 'offer' }>;
type ToMember = Extract<ToProcess, { type: 'members' | 'offered' | 'unreachable' | 'left' }>;

export class ProcessMesh<Loop extends MeshLoop> {
  readonly #descriptors: NativeDescriptors;
  readonly #controlSocketFd: number;
  /** Loops that have not ended. */
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

  /** Forwards a message of a loop and closes its descriptors. */
  forwardUp(loop: Loop, message: FromMember): void {
    const { serial } = loop;
    if (message.type === 'join') {
      this.#post({ type: 'join', loop: serial });
      return;
    }
    const { to, fds } = message;
    try {
      if (!this.#loops.has(loop)) return;
      callNative(() => requireNative().sendDescriptors(this.#controlSocketFd, [...fds]));
      this.#post({ type: 'offer', loop: serial, to });
    } catch {
      loop.post({ type: 'unreachable', id: to }); // the supervisor is gone, or has no room
    } finally {
      for (const fd of fds) closeSync(fd);
    }
  }

  /** Forwards a message of the supervisor. Throws `NATIVE_REFUSED` without a descriptor left. */
  forwardDown(message: ToMember): void {
    if (message.type === 'left') {
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
