// A loop as a member of its server's mesh: offers a channel to each member that is there when it joins, and
// accepts the offers of later ones. Not here: the list of members (mesh.ts), the messages (bus/).

import { type ChannelEnd, type MemberName, Members } from '../../channels/index.js';
import { defer, messageOf } from '../../lib/index.js';
import type { FromLoop, ToLoop } from '../protocol.js';
import type { OnMember } from '../supervisor/mesh.js';

type MemberMessage = Extract<ToLoop, { type: 'members' | 'offered' | 'unreachable' | 'left' }>;

export class Member {
  readonly #post: (message: FromLoop) => void;
  readonly #ends = new Map<number, ChannelEnd>();
  readonly #joined = defer<number>();
  #members: Members | undefined;
  #onMember: OnMember = () => {};

  /** `post` sends to the process. */
  constructor(post: (message: FromLoop) => void) {
    this.#post = post;
    this.#joined.promise.catch(() => {}); // the caller of `join` gets the rejection
  }

  /**
   * Calls `onMember` for each other member, now and later. Resolves with the loop's own number once it was
   * called for all that are there. To be called once. Rejects when a channel fails (`NATIVE_REFUSED`).
   */
  join(onMember: OnMember): Promise<number> {
    this.#onMember = onMember;
    this.#post({ type: 'join' });
    return this.#joined.promise;
  }

  receive(message: MemberMessage): void {
    switch (message.type) {
      case 'members':
        this.#join(message.self, message.others, message.fds);
        break;
      case 'offered':
        this.#accept(message.from, message.fds);
        break;
      case 'unreachable':
        this.#leave(message.id);
        break;
      case 'left':
        this.#leave(message.member.id);
        this.#members?.ended(message.member, message.survivors);
        break;
    }
  }

  #leave(id: number): void {
    this.#ends.get(id)?.peerExited?.();
    this.#ends.delete(id);
  }

  #join(self: MemberName, others: readonly MemberName[], [arenaFd = -1]: readonly number[]): void {
    try {
      const members = Members.join(arenaFd, self);
      this.#members = members;
      for (const other of others) {
        const { end, fds } = members.offer(other);
        this.#add(other.id, end);
        this.#post({ type: 'offer', to: other.id, fds });
      }
      this.#joined.resolve(self.id);
    } catch (error) {
      this.#joined.reject(error);
    }
  }

  #accept(from: MemberName, fds: readonly number[]): void {
    try {
      const end = this.#members?.accept(from, fds);
      if (end !== undefined) this.#add(from.id, end);
    } catch (error) {
      process.emitWarning(`another loop cannot be reached: ${messageOf(error)}`);
    }
  }

  #add(id: number, end: ChannelEnd): void {
    this.#ends.set(id, end);
    this.#onMember(id, end);
  }
}
