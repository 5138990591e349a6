// A loop among those of its server that talk to each other: offers a channel to each that is there when it
// comes, and takes those of the ones that come later. Not here: who is there (mesh.ts), what is said (bus/).

import { acceptChannel, type ChannelEnd, offerChannel } from '../channels/index.js';
import { channelFds } from '../host/index.js';
import { defer, messageOf } from '../internal/index.js';
import { copiesOf } from './copies.js';
import type { OnMember } from './mesh.js';
import type { FromLoop, ToLoop } from './protocol.js';

type MemberMessage = Extract<ToLoop, { type: 'members' | 'introduced' | 'parted' }>;

export class Member {
  readonly #post: (message: FromLoop) => void;
  readonly #ends = new Map<number, ChannelEnd>();
  readonly #joined = defer<number>();
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
        this.#offerAll(message.id, message.others);
        break;
      case 'introduced':
        this.#accept(message.from, message.fds);
        break;
      case 'parted':
        this.#ends.get(message.id)?.peerExited?.();
        this.#ends.delete(message.id);
        break;
    }
  }

  #offerAll(id: number, others: readonly number[]): void {
    try {
      for (const other of others) this.#offer(other);
      this.#joined.resolve(id);
    } catch (error) {
      this.#joined.reject(error);
    }
  }

  #offer(to: number): void {
    const offer = offerChannel('shm', { host: 'process', spin: true });
    let fds: number[];
    try {
      fds = copiesOf(offer.stdio.filter((fd) => typeof fd === 'number'));
    } catch (error) {
      offer.discard();
      throw error;
    }
    this.#add(to, offer.open(undefined));
    this.#post({ type: 'introduce', to, fds });
  }

  #accept(from: number, fds: readonly number[]): void {
    const named = Object.fromEntries(fds.map((fd, at) => [channelFds[at], fd]));
    try {
      this.#add(from, acceptChannel({ kind: 'shm', host: 'process', spin: true, ...named }));
    } catch (error) {
      process.emitWarning(`another loop cannot be reached: ${messageOf(error)}`);
    }
  }

  #add(id: number, end: ChannelEnd): void {
    this.#ends.set(id, end);
    this.#onMember(id, end);
  }
}
