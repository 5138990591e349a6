// The mesh: channels between the loops of a server, as the supervisor sees them. A loop that joins gets
// numbers in the arena of this process and the list of members, and offers a channel to each of them. Its
// descriptors go up with the offer and down to the other loop; without the native core there is no arena, and the
// path of a socket goes instead. From then on the two communicate directly, and the supervisor notifies them only
// when one of them has left. The supervisor's process is a member like any loop. Not here: the messages (bus/), and
// when whose memory is free (channels/shm/orphan-reclaim.ts).

import { type ChannelEnd, type MemberName, Members } from '../../channels/index.js';
import { nativeBinding } from '../../native.js';
import { acceptOverSocket } from '../portable/member-sockets.js';
import type { LoopRequest, ToLoop } from '../protocol.js';
import { dupFds } from '../shared/dup-fds.js';
import type { Link } from '../shared/link.js';

/** Member number of the supervisor's own process. */
export const supervisorMember = 0;
const supervisor: MemberName = { id: supervisorMember, owner: 0 };

/** A process of the server, which forwards messages to its loops. */
type MemberProcess = Link<ToLoop>;

interface Member {
  readonly name: MemberName;
  readonly process: MemberProcess;
  /** The loop's number in its process, which is not used again. */
  readonly loop: number;
}

type OfferMessage = Extract<LoopRequest, { type: 'offer' | 'offerAt' }>;

/** Called with each loop's end of the channel to this process. */
export type OnMember = (id: number, end: ChannelEnd) => void;

export class Mesh {
  readonly #onMember: OnMember;
  /** By member number, which is not used again. */
  readonly #members = new Map<number, Member>();
  /** Open while there are members, or memory of a former member is not free yet. */
  #arena: Members | undefined;
  readonly #ends = new Map<number, ChannelEnd>();
  #lastId = supervisorMember;

  constructor(onMember: OnMember) {
    this.#onMember = onMember;
  }

  /** Adds a loop, which offers a channel to each member that is there. Throws `NATIVE_REFUSED`. */
  join(process: MemberProcess, loop: number): void {
    if (this.#idOf(process, loop) !== undefined) return;
    const others = this.#names;
    if (nativeBinding() !== undefined) this.#arena ??= Members.found(() => this.#leaveArena());
    this.#lastId += 1;
    const self = { id: this.#lastId, owner: this.#arena?.takeOwner() ?? 0 };
    this.#members.set(self.id, { name: self, process, loop });
    const fds = this.#arena === undefined ? [] : dupFds([this.#arena.arenaFd]);
    process.post({ loop, body: { type: 'members', self, others }, fds });
  }

  get #names(): MemberName[] {
    return [supervisor, ...[...this.#members.values()].map(({ name }) => name)];
  }

  #leaveArena(): void {
    if (this.#members.size > 0 || this.#arena?.hasReclaimedAll !== true) return;
    this.#arena.leave();
    this.#arena = undefined;
  }

  /** Passes a loop's offer on to the member `to`; its `fds` stay the caller's. Throws `NATIVE_REFUSED`. */
  offer(process: MemberProcess, loop: number, offer: OfferMessage): void {
    const { to, fds } = offer;
    const id = this.#idOf(process, loop);
    const from = id === undefined ? undefined : this.#members.get(id)?.name;
    if (from === undefined) return;
    if (to === supervisorMember) {
      if (!this.#ends.has(from.id)) this.#accept(from, offer);
      return;
    }
    const other = this.#members.get(to);
    if (other === undefined) return; // the loop has been notified of its end, too
    const path = offer.type === 'offer' ? undefined : offer.path;
    const body: ToLoop = { type: 'offered', from, path };
    other.process.post({ loop: other.loop, body, fds: dupFds(fds) });
  }

  #idOf(process: MemberProcess, loop: number): number | undefined {
    for (const [id, member] of this.#members) {
      if (member.process === process && member.loop === loop) return id;
    }
    return undefined;
  }

  #accept(from: MemberName, offer: OfferMessage): void {
    const end =
      offer.type === 'offer'
        ? this.#arena?.accept(from, dupFds(offer.fds))
        : acceptOverSocket(offer.path);
    if (end === undefined) return;
    this.#ends.set(from.id, end);
    this.#onMember(from.id, end);
  }

  /**
   * Removes a loop, or every loop of a process, that has ended. Its workers, which may still use its memory,
   * have ended once `workersEnded` resolves.
   */
  ended(process: MemberProcess, loop: number | undefined, workersEnded: Promise<void>): void {
    for (const [id, member] of this.#members) {
      if (member.process !== process || (loop !== undefined && member.loop !== loop)) continue;
      this.#members.delete(id);
      const survivors = this.#names;
      const body: ToLoop = { type: 'left', member: member.name, survivors };
      for (const other of this.#members.values()) other.process.post({ loop: other.loop, body });
      this.#ends.get(id)?.peerExited?.();
      this.#ends.delete(id);
      this.#arena?.ended(member.name, survivors, workersEnded);
    }
  }
}
