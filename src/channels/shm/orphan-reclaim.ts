// Reclaims the blocks that a dead member had references to. Others may have got those blocks through it:
// they register with the owner of the memory, their successor, before anybody frees them.
//
// Each member that lived then (a survivor), once it has read everything that the dead one had sent,
//   1. announces to the successor of each block that came through the dead one how many references it has.
//      The successor is the member that owns the block, or the arena's owner when that has ended, too;
//   2. announces to every other survivor, over the same channels, that it has `transferred` its references;
//   3. announces `settled` once it has received 2 from all others: it has read all of their 1 by then.
// A member that has received 3 from all others takes back what it had lent to the dead one: the further
// holders of that are registered with their successors. A block may have come through several dead members,
// so 3 and this step are done for all of them together. The arena's owner then has every reference to
// memory of the dead, and frees it after the last of these.
//
// A late member, or a channel between two that was never made, frees nothing early: the memory is freed when
// those have ended. Not here: the membership (serve/supervisor/mesh.ts), counts of references (blocks.ts).

import { callNative } from '../../native.js';
import type { Block, RefTransfer, RefTransferHandlers, RefTransferStep } from '../types.js';
import { type BlockTable, memberOf, type ShmBlocks } from './blocks.js';

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

  handle(handlers: RefTransferHandlers): void {
    this.#handlers = handlers;
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
  end: { readonly owner: number; readonly others: readonly number[] } | undefined;
  /** True: something of it in this thread's process (a worker's task) has not ended yet. */
  isHeld: boolean;
  /** The others that have done each step. */
  readonly transferred: Set<number>;
  readonly settled: Set<number>;
  /** The last step of this thread. */
  state: 'none' | RefTransferStep;
}

/** One member's side of the protocol, for all members that have ended. */
export class OrphanReclaim {
  readonly table: BlockTable;
  readonly #self: MemberName;
  readonly #onReclaimed: () => void;
  readonly #transfers = new Map<number, MemberRefTransfer>();
  readonly #dead = new Map<number, DeadMember>();

  /** Calls `onReclaimed` whenever the memory of all members that have ended is reclaimed. */
  constructor(table: BlockTable, self: MemberName, onReclaimed: () => void) {
    this.table = table;
    this.#self = self;
    this.#onReclaimed = onReclaimed;
  }

  /** True: no member has ended whose memory is not reclaimed. */
  get isComplete(): boolean {
    return this.#dead.size === 0;
  }

  add(transfer: MemberRefTransfer): void {
    this.#transfers.set(transfer.id, transfer);
    this.advance();
  }

  /**
   * A member has ended. `survivors` are the same list for all of them, this thread included. This thread
   * transfers nothing before `whenOver` resolves, and the others wait for it.
   */
  ended(
    { id, owner }: MemberName,
    survivors: readonly MemberName[],
    whenOver?: Promise<void>,
  ): void {
    const others = survivors.map((each) => each.id).filter((each) => each !== this.#self.id);
    const member = this.#deadMember(id);
    member.end = { owner, others };
    member.isHeld = whenOver !== undefined;
    void whenOver?.then(() => {
      member.isHeld = false;
      this.advance();
    });
    this.advance();
  }

  /** `by` has done this step for `member`. */
  stepDone(by: number, member: number, step: RefTransferStep): void {
    this.#deadMember(member)[step].add(by);
    this.advance();
  }

  #deadMember(id: number): DeadMember {
    const known = this.#dead.get(id);
    if (known !== undefined) return known;
    const member: DeadMember = {
      id,
      end: undefined,
      isHeld: false,
      transferred: new Set(),
      settled: new Set(),
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
    const dead = [...this.#dead.values()].filter(({ end }) => end !== undefined);
    for (const each of dead) if (this.#mayTransfer(each)) this.#transfer(each);
    if (dead.length === 0 || !this.#haveAll(dead, 'transferred')) return;
    for (const each of dead) if (each.state !== 'settled') this.#announce(each, 'settled');
    if (!this.#haveAll(dead, 'settled')) return;
    for (const each of dead) this.#finish(each);
    this.#onReclaimed();
  }

  /** True: this thread and all living others have done the step for all of them. */
  #haveAll(dead: readonly DeadMember[], step: RefTransferStep): boolean {
    return dead.every((member) => {
      const hasDone = (each: number): boolean => this.#hasEnded(each) || member[step].has(each);
      return member.state !== 'none' && member.end?.others.every(hasDone) === true;
    });
  }

  /** True: all that it sent was read, and each living other has a channel (some may be on their way). */
  #mayTransfer({ id, end, isHeld, state }: DeadMember): boolean {
    if (isHeld || state !== 'none' || this.#transfers.get(id)?.isReadToEnd === false) return false;
    const isReachable = (each: number): boolean =>
      this.#transfers.has(each) || this.#hasEnded(each);
    return end?.others.every(isReachable) === true;
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
    if (dead !== undefined) this.table.returnAll(dead.blocks);
    if (end === undefined) return;
    if (this.#self.owner === 0) this.table.memberEnded(end.owner);
    else callNative(() => this.table.native.unmapMember(end.owner));
  }
}
