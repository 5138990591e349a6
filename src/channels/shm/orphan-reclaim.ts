// Reclaims the blocks that a dead member had references to. Others may have got those blocks through it:
// they register with the owner of the memory, their successor, before anybody frees them.
//
// Each member that lived then (a survivor), once it has read everything that the dead one had sent,
//   1. announces to the successor of each block that came through the dead one how many references it has.
//      The successor is the member that owns the block, or the arena's owner when that has ended, too;
//   2. announces to every other survivor, over the same channels, that it has `transferred` its references;
//   3. announces `settled` once it has received 2 from all living others: it has read all of their 1 by then.
// A member that has received 3 from all living others takes back what it had lent to the dead one: the further
// holders of that are registered with their successors. A block may have come through several dead members.
// Survivors do 1 and 2 in the order of the ends, so a dead member depends only on later ones: on those that ended
// before they did 2 for it. 3 for it waits for 3 for these, of this survivor and of the arena's owner. Others are
// independent, so that members which end all the time hold no memory back.
// The arena's owner then has every reference to memory of the dead, and frees it after the last of these. Nothing
// is freed in the name of a dead owner before, which is why 3 of members that have ended is not missed.
//
// A late member, or a channel between two that was never made, frees nothing early: the memory is freed when
// those have ended. Not here: the membership (serve/supervisor/mesh.ts), counts of references (blocks.ts).

import { callNative } from '../../native.js';
import type { Block, RefTransfer, RefTransferHandlers, RefTransferStep } from '../types.js';
import { type BlockTable, memberOf, type ShmBlocks } from './blocks.js';

/** Number of the arena's owner as a member. */
const arenaOwner = 0;

/** An event loop that has channels to others over one arena. */
export interface MemberName {
  /** Not used again. */
  readonly id: number;
  /** The first of its numbers in the arena; 0 for the arena's owner. */
  readonly owner: number;
}

function ignore(): void {}

/** A channel to another member. */
export class MemberRefTransfer implements RefTransfer {
  readonly id: number;
  readonly owner: number;
  readonly blocks: ShmBlocks;
  #handlers: RefTransferHandlers = { onInherit: ignore, onStep: ignore };
  isReadToEnd = false;
  readonly #reclaim: OrphanReclaim;

  constructor({ id, owner }: MemberName, blocks: ShmBlocks, reclaim: OrphanReclaim) {
    this.id = id;
    this.owner = owner;
    this.blocks = blocks;
    this.#reclaim = reclaim;
  }

  /** From now on others are announced over this channel. */
  handle(handlers: RefTransferHandlers): void {
    this.#handlers = handlers;
    this.#reclaim.add(this);
  }

  reportInherit(block: Block, count: number): void {
    this.#handlers.onInherit(block, count);
  }

  reportStep(member: number, step: RefTransferStep): void {
    this.#handlers.onStep(member, step);
  }

  inherit(block: Block, count: number): void {
    this.#reclaim.table.inherit(block, this.blocks, count);
  }

  receiveStep(member: number, step: RefTransferStep): void {
    this.#reclaim.stepDone(this.id, member, step);
  }

  finishReading(): void {
    this.isReadToEnd = true;
    this.#reclaim.advance();
  }
}

/** A member that has ended, or for which a peer has announced a step. */
interface DeadMember {
  readonly id: number;
  /** `undefined`: its end was not announced to this thread yet. */
  end: { readonly owner: number; readonly others: Set<number> } | undefined;
  /** It, and members that ended before, whose workers may still use what it held or had lent. */
  readonly usedBy: Set<number>;
  readonly transferred: Progress;
  readonly settled: Progress;
  /** The last step of this thread. */
  state: 'none' | RefTransferStep;
}

const steps: readonly RefTransferStep[] = ['transferred', 'settled'];

/** Progress of the others with a step for a member that has ended. */
class Progress {
  readonly #done = new Set<number>();
  /** Living members that have not done it. */
  readonly awaited = new Set<number>();
  /** Members that ended before they did it. */
  readonly undone = new Set<number>();

  begin(others: Iterable<number>): void {
    for (const each of others) if (!this.#done.has(each)) this.awaited.add(each);
  }

  /** True: no living member is awaited. */
  get isOver(): boolean {
    return this.awaited.size === 0;
  }

  done(by: number): void {
    this.#done.add(by);
    this.awaited.delete(by);
    this.undone.delete(by);
  }

  isDone(by: number): boolean {
    return this.#done.has(by);
  }

  ended(id: number): void {
    if (this.awaited.delete(id)) this.undone.add(id);
  }
}

/** One member's side of the protocol, for all members that have ended. */
export class OrphanReclaim {
  readonly table: BlockTable;
  readonly #self: MemberName;
  readonly #onReclaimed: () => void;
  readonly #transfers = new Map<number, MemberRefTransfer>();
  readonly #dead = new Map<number, DeadMember>();
  /** Dead members whose end was announced, in this order, which is the same for all members. */
  #ended: DeadMember[] = [];
  /** Ended members that have workers. */
  readonly #working = new Set<number>();

  /** Calls `onReclaimed` whenever the memory of members that have ended is reclaimed. */
  constructor(table: BlockTable, self: MemberName, onReclaimed: () => void) {
    this.table = table;
    this.#self = self;
    this.#onReclaimed = onReclaimed;
  }

  /** True: no member is known to have ended whose memory is not reclaimed. */
  get isComplete(): boolean {
    return this.#dead.size === 0;
  }

  add(transfer: MemberRefTransfer): void {
    this.#transfers.set(transfer.id, transfer);
    this.advance();
  }

  /**
   * A member has ended. `survivors` are the same list for all of them, this thread included. `hasWorkers`: this
   * thread announces `settled` for it, and for those that end later, only after `workersEnded`. Others wait for it.
   */
  ended(
    { id, owner }: MemberName,
    survivors: readonly MemberName[],
    { hasWorkers = false } = {},
  ): void {
    const others = new Set(survivors.map((each) => each.id));
    others.delete(this.#self.id);
    const member = this.#deadMember(id);
    member.end = { owner, others };
    this.#ended.push(member);
    for (const step of steps) {
      member[step].begin(others);
      for (const each of this.#dead.values()) each[step].ended(id);
    }
    if (hasWorkers) this.#working.add(id);
    for (const each of this.#working) member.usedBy.add(each);
    this.advance();
  }

  /** Nothing uses memory in the name of this ended member any more. */
  workersEnded(id: number): void {
    this.#working.delete(id);
    for (const each of this.#dead.values()) each.usedBy.delete(id);
    this.advance();
  }

  /** `by` has done this step for `member`. */
  stepDone(by: number, member: number, step: RefTransferStep): void {
    // Ends are announced in the same order to all: once that of `by` is, an unknown member is finished.
    if (!this.#dead.has(member) && this.#hasEnded(by)) return;
    const progress = this.#deadMember(member)[step];
    progress.done(by);
    if (progress.isOver || by === arenaOwner) this.advance();
  }

  #deadMember(id: number): DeadMember {
    const known = this.#dead.get(id);
    if (known !== undefined) return known;
    const member: DeadMember = {
      id,
      end: undefined,
      usedBy: new Set(),
      transferred: new Progress(),
      settled: new Progress(),
      state: 'none',
    };
    this.#dead.set(id, member);
    return member;
  }

  #hasEnded(id: number): boolean {
    return this.#dead.get(id)?.end !== undefined;
  }

  /** Does the steps that have become possible. */
  advance(): void {
    // Steps 1 and 2 in the order of the ends: a member that has done them for one has done them for all before.
    for (const each of this.#ended) {
      if (each.state !== 'none') continue;
      if (!this.#mayTransfer(each)) break;
      this.#transfer(each);
    }
    // A member depends on later ones only.
    for (const each of this.#ended.toReversed()) {
      if (this.#maySettle(each)) this.#announce(each, 'settled');
    }
    const done = this.#ended.filter((each) => each.state === 'settled' && each.settled.isOver);
    if (done.length === 0) return;
    for (const each of done) this.#finish(each);
    this.#onReclaimed();
  }

  /**
   * True: all living have done 2 for it, its workers have ended, and this thread and the arena's owner have `settled`
   * for those that it depends on. What these gave to their workers, for which the arena's owner waits, may not have
   * been announced to everybody.
   */
  #maySettle({ state, usedBy, transferred }: DeadMember): boolean {
    if (state !== 'transferred' || !transferred.isOver || usedBy.size > 0) return false;
    const isOwner = this.#self.id === arenaOwner;
    for (const id of transferred.undone) {
      const other = this.#dead.get(id);
      if (other?.state !== 'settled') return false;
      if (!isOwner && !other.settled.isDone(arenaOwner)) return false;
    }
    return true;
  }

  /** True: all that it sent was read, and each living other has a channel (some may be on their way). */
  #mayTransfer({ id, end }: DeadMember): boolean {
    if (this.#transfers.get(id)?.isReadToEnd === false) return false;
    const isReachable = (each: number): boolean =>
      this.#transfers.has(each) || this.#hasEnded(each);
    for (const each of end?.others ?? []) if (!isReachable(each)) return false;
    return true;
  }

  #transfer(member: DeadMember): void {
    const dead = this.#transfers.get(member.id);
    if (dead !== undefined) {
      for (const block of this.table.blocksVia(dead.blocks)) {
        const successor = this.#successorOf(block);
        const count = this.table.reroute(block, successor?.blocks);
        successor?.reportInherit(block, count);
      }
    }
    this.#announce(member, 'transferred');
  }

  #announce(member: DeadMember, step: RefTransferStep): void {
    member.state = step;
    for (const each of member.end?.others ?? []) {
      if (!this.#hasEnded(each)) this.#transfers.get(each)?.reportStep(member.id, step);
    }
  }

  /** Returns the member that takes the references to a block; `undefined`: this thread itself. */
  #successorOf({ owner }: Block): MemberRefTransfer | undefined {
    const wanted = memberOf(owner);
    if (wanted === this.#self.owner) return undefined;
    const living = [...this.#transfers.values()].filter(({ id }) => !this.#hasEnded(id));
    const isArenaOwner = ({ owner }: MemberName): boolean => owner === 0;
    return living.find((each) => each.owner === wanted) ?? living.find(isArenaOwner);
  }

  #finish({ id, end }: DeadMember): void {
    const dead = this.#transfers.get(id);
    this.#transfers.delete(id);
    this.#dead.delete(id);
    this.#ended = this.#ended.filter((each) => each.id !== id);
    if (dead !== undefined) this.table.returnAll(dead.blocks);
    for (const each of this.#dead.values()) {
      each.end?.others.delete(id);
      for (const step of steps) each[step].done(id); // what it may have left undone is done
    }
    if (end === undefined) return;
    if (this.#self.owner === 0) this.table.memberEnded(end.owner);
    else callNative(() => this.table.native.unmapMember(end.owner));
  }
}
