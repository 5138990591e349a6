// A loop among those of its server that talk to each other: offers a channel to each that is there when it
// comes, and takes those of the ones that come later. Not here: who is there (mesh.ts), what is said (bus/).

import { type ChannelEnd, type MemberName, Members } from '../channels/index.js';
import { defer, messageOf } from '../internal/index.js';
import type { OnMember } from './mesh.js';
import type { FromLoop, ToLoop } from './protocol.js';

type MemberMessage = Extract<ToLoop, { type: 'members' | 'introduced' | 'unreachable' | 'parted' }>;

export class Member {
  readonly #post: (message: FromLoop) => void;
  readonly #ends = new Map<number, ChannelEnd>();
  readonly #joined = defer<number>();
  #members: Members | undefined;
  #onMember: OnMember = () => {};

  /** `post` tells the process. */
  constructor(post: (message: FromLoop) => void) {
    this.#post = post;
    this.#joined.promise.catch(() => {}); // whoever joins hears of it
  }

  /**
   * Calls `onMember` for each of the others, now and later. Resolves with its own number once it was
   * called for all that are there. Once only. Rejects where no channel can be had (`NATIVE_REFUSED`).
   */
  join(onMember: OnMember): Promise<number> {
    this.#onMember = onMember;
    this.#post({ type: 'attend' });
    return this.#joined.promise;
  }

  receive(message: MemberMessage): void {
    switch (message.type) {
      case 'members':
        this.#join(message.self, message.others, message.fds);
        break;
      case 'introduced':
        this.#accept(message.from, message.fds);
        break;
      case 'unreachable':
        this.#part(message.id);
        break;
      case 'parted':
        this.#part(message.member.id);
        this.#members?.ended(message.member, message.survivors);
        break;
    }
  }

  #part(id: number): void {
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
        this.#post({ type: 'introduce', to: other.id, fds });
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
