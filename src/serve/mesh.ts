// Which loops of a server have channels to each other, as the supervisor knows it: a loop that attends is
// told who is there, and offers a channel to each of them; its descriptors go up with the offer and down to
// the other loop. From then on the two talk directly, and the supervisor says only when one of them is gone.
// The process of the supervisor is a member like any loop. Not here: what is said (bus/).

import { acceptChannel, type ChannelEnd } from '../channels/index.js';
import { channelFds } from '../host/index.js';
import { copiesOf } from './copies.js';
import type { ToProcess } from './protocol.js';

/** The number of the supervisor's own process among the members. @hidden */
export const supervisorMember = 0;

/** Stands for a process of the server. */
export interface MemberProcess {
  /** Sends these descriptors, which stay the caller's, and the message. Throws `NATIVE_REFUSED`. */
  tell(message: ToProcess, fds?: readonly number[]): void;
}

interface Member {
  readonly process: MemberProcess;
  /** Its number in its process, which is not used again. */
  readonly loop: number;
}

/** Called with each loop's end of the channel to this process. @hidden */
export type OnMember = (id: number, end: ChannelEnd) => void;

/** @hidden */
export class Mesh {
  readonly #onMember: OnMember;
  /** By numbers that are not used again. */
  readonly #members = new Map<number, Member>();
  readonly #ends = new Map<number, ChannelEnd>();
  #lastId = supervisorMember;

  constructor(onMember: OnMember) {
    this.#onMember = onMember;
  }

  /** A loop wants channels to all that are there. */
  attend(process: MemberProcess, loop: number): void {
    if (this.#idOf(process, loop) !== undefined) return;
    const others = [supervisorMember, ...this.#members.keys()];
    this.#lastId += 1;
    this.#members.set(this.#lastId, { process, loop });
    process.tell({ type: 'members', loop, id: this.#lastId, others });
  }

  /** It offers a channel to the member `to`; `fds` stay the caller's. Throws `NATIVE_REFUSED`. */
  introduce(process: MemberProcess, loop: number, to: number, fds: readonly number[]): void {
    const from = this.#idOf(process, loop);
    if (from === undefined) return;
    if (to === supervisorMember) {
      if (!this.#ends.has(from)) this.#accept(from, fds);
      return;
    }
    const other = this.#members.get(to);
    try {
      if (other === undefined) throw new Error('it is gone since the loop was told of it');
      other.process.tell({ type: 'introduced', loop: other.loop, from }, fds);
    } catch {
      process.tell({ type: 'parted', id: to });
    }
  }

  #idOf(process: MemberProcess, loop: number): number | undefined {
    for (const [id, member] of this.#members) {
      if (member.process === process && member.loop === loop) return id;
    }
    return undefined;
  }

  #accept(from: number, fds: readonly number[]): void {
    const copies = copiesOf(fds);
    const named = Object.fromEntries(copies.map((fd, at) => [channelFds[at], fd]));
    const end = acceptChannel({ kind: 'shm', host: 'process', spin: true, ...named });
    this.#ends.set(from, end);
    this.#onMember(from, end);
  }

  /** The loop, or every loop of the process, has ended. */
  ended(process: MemberProcess, loop?: number): void {
    for (const [id, member] of this.#members) {
      if (member.process !== process || (loop !== undefined && member.loop !== loop)) continue;
      this.#members.delete(id);
      this.#ends.get(id)?.peerExited?.();
      this.#ends.delete(id);
      const others = new Set([...this.#members.values()].map((each) => each.process));
      for (const other of others) other.tell({ type: 'parted', id });
    }
  }
}
