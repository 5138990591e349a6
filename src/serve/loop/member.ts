// A loop as a member of its server's mesh: offers a channel to each member that is there when it joins, and
// accepts the offers of later ones. Not here: the list of members (mesh.ts), the messages (bus/).

import { setTimeout as wait } from 'node:timers/promises';
import { type ChannelEnd, type MemberName, Members } from '../../channels/index.js';
import { CodedError } from '../../errors.js';
import { defer, messageOf } from '../../lib/index.js';
import { acceptOverSocket, type Offer, offerOverSocket } from '../portable/member-sockets.js';
import type { FromLoop, LoopMessage } from '../protocol.js';
import type { Link } from '../shared/link.js';
import { type OnMember, supervisorMember } from '../supervisor/mesh.js';

/** Maximum wait of a joining loop for one other, in ms. */
const blockedPeerMs = 2000;

type MemberMessage = Extract<LoopMessage, { type: 'members' | 'offered' | 'left' | 'returned' }>;

export class Member {
  readonly #up: Link<FromLoop>;
  readonly #ends = new Map<number, ChannelEnd>();
  readonly #joined = defer<number>();
  #members: Members | undefined;
  /** Offers over sockets that are not accepted yet, by member. */
  readonly #offers = new Map<number, Offer>();
  /** Members that have left. */
  readonly #gone = new Set<number>();
  #onMember: OnMember = () => {};

  constructor(up: Link<FromLoop>) {
    this.#up = up;
    this.#joined.promise.catch(() => {}); // the caller of `join` gets the rejection
  }

  /**
   * Calls `onMember` for each other member, now and later. Resolves with the loop's own number once it was
   * called for all that are there. To be called once. Rejects when a channel fails (`NATIVE_REFUSED`,
   * `CHANNEL_UNAVAILABLE`).
   */
  join(onMember: OnMember): Promise<number> {
    this.#onMember = onMember;
    this.#up.post({ body: { type: 'join' } });
    return this.#joined.promise;
  }

  receive(message: MemberMessage): void {
    switch (message.type) {
      case 'members':
        if (message.fds.length > 0) this.#join(message.self, message.others, message.fds);
        else void this.#joinOverSockets(message.self, message.others);
        break;
      case 'offered':
        this.#accept(message);
        break;
      case 'returned':
        if (message.body.type === 'join') {
          this.#joined.reject(new CodedError('NATIVE_REFUSED', message.message));
        } else this.#leave(message.body.to ?? -1);
        break;
      case 'left':
        this.#leave(message.member.id);
        this.#members?.ended(message.member, message.survivors);
        break;
    }
  }

  /** The supervisor is gone, and no message says that it has left. */
  orphaned(): void {
    this.#leave(supervisorMember);
  }

  #leave(id: number): void {
    this.#gone.add(id);
    this.#offers.get(id)?.withdraw();
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
        this.#up.post({ body: { type: 'offer', to: other.id }, fds });
      }
      this.#joined.resolve(self.id);
    } catch (error) {
      this.#joined.reject(error);
    }
  }

  async #joinOverSockets(self: MemberName, others: readonly MemberName[]): Promise<void> {
    try {
      await Promise.all(others.map(({ id }) => this.#offerOverSocket(id)));
      this.#joined.resolve(self.id);
    } catch (error) {
      this.#joined.reject(error);
    }
  }

  async #offerOverSocket(to: number): Promise<void> {
    if (this.#gone.has(to)) return;
    const offer = await offerOverSocket();
    this.#offers.set(to, offer);
    if (this.#gone.has(to)) offer.withdraw();
    this.#up.post({ body: { type: 'offerAt', to, path: offer.path } });
    const added = offer.end.then((end) => {
      this.#offers.delete(to);
      if (end !== undefined) this.#add(to, end);
    });
    // A loop that is blocked connects later.
    await Promise.race([added, wait(blockedPeerMs, undefined, { ref: false })]);
  }

  #accept({ from, path, fds }: Extract<MemberMessage, { type: 'offered' }>): void {
    try {
      const end = path === undefined ? this.#members?.accept(from, fds) : acceptOverSocket(path);
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
