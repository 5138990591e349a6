// Which loops of a server have channels to each other, as the supervisor knows it: a loop that attends gets
// numbers in the arena of this process, is told who is there, and offers a channel to each of them; its
// descriptors go up with the offer and down to the other loop. From then on the two talk directly, and the
// supervisor says only when one of them is gone. The process of the supervisor is a member like any loop.
// Not here: what is said (bus/), and whose memory is free when (channels/shm/orphan-reclaim.ts).

import { type ChannelEnd, type MemberName, Members } from '../channels/index.js';
import { dupFds } from './dup-fds.js';
import type { ToProcess } from './protocol.js';

/** The number of the supervisor's own process among the members. */
export const supervisorMember = 0;
const supervisor: MemberName = { id: supervisorMember, owner: 0 };

/** Stands for a process of the server. */
export interface MemberProcess {
  /** Sends these descriptors, which stay the caller's, and the message. Throws `NATIVE_REFUSED`. */
  tell(message: ToProcess, fds?: readonly number[]): void;
}

interface Member {
  readonly name: MemberName;
  readonly process: MemberProcess;
  /** Its number in its process, which is not used again. */
  readonly loop: number;
}

/** Called with each loop's end of the channel to this process. */
export type OnMember = (id: number, end: ChannelEnd) => void;

export class Mesh {
  readonly #onMember: OnMember;
  /** By numbers that are not used again. */
  readonly #members = new Map<number, Member>();
  /** While there are any, or memory of one that was there is not free yet. */
  #arena: Members | undefined;
  readonly #ends = new Map<number, ChannelEnd>();
  #lastId = supervisorMember;

  constructor(onMember: OnMember) {
    this.#onMember = onMember;
  }

  /** A loop wants channels to all that are there. Throws `NATIVE_REFUSED`. */
  attend(process: MemberProcess, loop: number): void {
    if (this.#idOf(process, loop) !== undefined) return;
    const others = this.#names;
    this.#arena ??= Members.found(() => this.#leaveArena());
    this.#lastId += 1;
    const self = { id: this.#lastId, owner: this.#arena.takeOwner() };
    this.#members.set(self.id, { name: self, process, loop });
    process.tell({ type: 'members', loop, self, others }, [this.#arena.arenaFd]);
  }

  get #names(): MemberName[] {
    return [supervisor, ...[...this.#members.values()].map(({ name }) => name)];
  }

  #leaveArena(): void {
    if (this.#members.size > 0 || this.#arena?.hasReclaimedAll !== true) return;
    this.#arena.leave();
    this.#arena = undefined;
  }

  /** It offers a channel to the member `to`; `fds` stay the caller's. Throws `NATIVE_REFUSED`. */
  introduce(process: MemberProcess, loop: number, to: number, fds: readonly number[]): void {
    const id = this.#idOf(process, loop);
    const from = id === undefined ? undefined : this.#members.get(id)?.name;
    if (from === undefined) return;
    if (to === supervisorMember) {
      if (!this.#ends.has(from.id)) this.#accept(from, fds);
      return;
    }
    const other = this.#members.get(to);
    if (other === undefined) return; // that it is gone was said, too
    try {
      other.process.tell({ type: 'introduced', loop: other.loop, from }, fds);
    } catch {
      process.tell({ type: 'unreachable', loop, id: to });
    }
  }

  #idOf(process: MemberProcess, loop: number): number | undefined {
    for (const [id, member] of this.#members) {
      if (member.process === process && member.loop === loop) return id;
    }
    return undefined;
  }

  #accept(from: MemberName, fds: readonly number[]): void {
    const end = this.#arena?.accept(from, dupFds(fds));
    if (end === undefined) return;
    this.#ends.set(from.id, end);
    this.#onMember(from.id, end);
  }

  /**
   * The loop, or every loop of the process, has ended; its workers, which may still be in the middle of what
   * they did with its memory, once `workersEnded` resolves.
   */
  ended(process: MemberProcess, loop: number | undefined, workersEnded: Promise<void>): void {
    for (const [id, member] of this.#members) {
      if (member.process !== process || (loop !== undefined && member.loop !== loop)) continue;
      this.#members.delete(id);
      const survivors = this.#names;
      const others = new Set([...this.#members.values()].map((each) => each.process));
      for (const other of others) other.tell({ type: 'parted', member: member.name, survivors });
      this.#ends.get(id)?.peerExited?.();
      this.#ends.delete(id);
      this.#arena?.ended(member.name, survivors, workersEnded);
    }
  }
}
