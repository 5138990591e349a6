// What becomes of the references to blocks that a member held when it ended: others may have got those
// blocks through it, and say so to whoever owns them, their heir, before anybody takes them for free.
//
// Each member that lived then (a survivor), once it has read all that the dead one had sent,
//   1. tells the heir of each block that came through it how many references it has: the member that owns
//      the block, or where that has ended, too, whoever made the arena;
//   2. tells every other survivor, over the same channels, that it has buried the dead one;
//   3. tells them, once it has heard 2 of all others, and so has read what it is to be told by 1, that it
//      has settled its estate.
// Who has heard 3 of all others takes back what it had lent to the dead one: those who had it of that are
// known to their heirs. A block may have come through several who are dead by now, so 3 and this are done
// for all of them together. Whoever made the arena knows then who refers to memory of the dead, and frees
// it after the last of these.
//
// Nothing is free before its time when a member is late, or a channel between two was never made: it is
// free when those have ended. Not here: who is there (serve/mesh.ts), counts of references (blocks.ts).

import { callNative } from '../../native.js';
import type { Block, Estate, EstateStep } from '../types.js';
import { type BlockTable, memberOf, type ShmBlocks } from './blocks.js';

/** An event loop that has channels to others over one arena. */
export interface MemberName {
  /** Not used again. */
  readonly id: number;
  /** The first of its numbers in the arena; 0 for whoever made it. */
  readonly owner: number;
}

function ignore(): void {}

/** A channel to another member. */
export class MemberEstate implements Estate {
  readonly id: number;
  readonly owner: number;
  readonly blocks: ShmBlocks;
  onInherit: (block: Block, count: number) => void = ignore;
  onStep: (member: number, step: EstateStep) => void = ignore;
  isSealed = false;
  readonly #burials: Burials;

  constructor({ id, owner }: MemberName, blocks: ShmBlocks, burials: Burials) {
    this.id = id;
    this.owner = owner;
    this.blocks = blocks;
    this.#burials = burials;
  }

  inherit(block: Block, count: number): void {
    this.#burials.table.inherit(block, this.blocks, count);
  }

  hear(member: number, step: EstateStep): void {
    this.#burials.heard(this.id, member, step);
  }

  seal(): void {
    this.isSealed = true;
    this.#burials.look();
  }
}

/** A member that has ended, or of which another has said so. */
interface Grave {
  readonly id: number;
  /** `undefined`: this thread has not been told yet. */
  told: { readonly owner: number; readonly others: readonly number[] } | undefined;
  /** Something of it, known to this thread, has not ended yet. */
  isHeld: boolean;
  /** Which of the others have done that. */
  readonly buried: Set<number>;
  readonly settled: Set<number>;
  /** What this thread has done. */
  state: 'none' | EstateStep;
}

/** Those of one member. */
export class Burials {
  readonly table: BlockTable;
  readonly #self: MemberName;
  readonly #onBuried: () => void;
  readonly #estates = new Map<number, MemberEstate>();
  readonly #graves = new Map<number, Grave>();

  /** `onBuried` is called when all that have ended are buried by all. */
  constructor(table: BlockTable, self: MemberName, onBuried: () => void) {
    this.table = table;
    this.#self = self;
    this.#onBuried = onBuried;
  }

  /** Nobody has ended who is not buried by all. */
  get areOver(): boolean {
    return this.#graves.size === 0;
  }

  add(estate: MemberEstate): void {
    this.#estates.set(estate.id, estate);
    this.look();
  }

  /**
   * `survivors` are the same for all of them, this thread among them. It does not bury before `whenOver`
   * resolves, and the others wait for it.
   */
  ended(
    { id, owner }: MemberName,
    survivors: readonly MemberName[],
    whenOver?: Promise<void>,
  ): void {
    const others = survivors.map((each) => each.id).filter((each) => each !== this.#self.id);
    const grave = this.#graveOf(id);
    grave.told = { owner, others };
    grave.isHeld = whenOver !== undefined;
    void whenOver?.then(() => {
      grave.isHeld = false;
      this.look();
    });
    this.look();
  }

  /** `by` has done this. */
  heard(by: number, member: number, step: EstateStep): void {
    this.#graveOf(member)[step].add(by);
    this.look();
  }

  #graveOf(id: number): Grave {
    const known = this.#graves.get(id);
    if (known !== undefined) return known;
    const grave: Grave = {
      id,
      told: undefined,
      isHeld: false,
      buried: new Set(),
      settled: new Set(),
      state: 'none',
    };
    this.#graves.set(id, grave);
    return grave;
  }

  #hasEnded(id: number): boolean {
    return this.#graves.get(id)?.told !== undefined;
  }

  /** Something has changed that a burial may wait for. */
  look(): void {
    const graves = [...this.#graves.values()].filter(({ told }) => told !== undefined);
    for (const grave of graves) if (this.#mayBury(grave)) this.#bury(grave);
    if (graves.length === 0 || !this.#haveAll(graves, 'buried')) return;
    for (const grave of graves) if (grave.state !== 'settled') this.#tell(grave, 'settled');
    if (!this.#haveAll(graves, 'settled')) return;
    for (const grave of graves) this.#finish(grave);
    this.#onBuried();
  }

  /** Whether this thread has done it for all of them, and whoever lives of the others. */
  #haveAll(graves: readonly Grave[], step: EstateStep): boolean {
    return graves.every((grave) => {
      const hasDone = (each: number): boolean => this.#hasEnded(each) || grave[step].has(each);
      return grave.state !== 'none' && grave.told?.others.every(hasDone) === true;
    });
  }

  /** All that it sent was read, and all others can be told: channels to some of them may be on their way. */
  #mayBury({ id, told, isHeld, state }: Grave): boolean {
    if (isHeld || state !== 'none' || this.#estates.get(id)?.isSealed === false) return false;
    const mayTell = (each: number): boolean => this.#estates.has(each) || this.#hasEnded(each);
    return told?.others.every(mayTell) === true;
  }

  #bury(grave: Grave): void {
    const dead = this.#estates.get(grave.id);
    if (dead !== undefined) {
      for (const block of this.table.blocksVia(dead.blocks)) {
        const heir = this.#heirOf(block);
        const count = this.table.reroute(block, heir?.blocks);
        heir?.onInherit(block, count);
      }
    }
    this.#tell(grave, 'buried');
  }

  #tell(grave: Grave, step: EstateStep): void {
    grave.state = step;
    for (const each of grave.told?.others ?? []) {
      if (!this.#hasEnded(each)) this.#estates.get(each)?.onStep(grave.id, step);
    }
  }

  /** `undefined`: this thread itself. */
  #heirOf({ owner }: Block): MemberEstate | undefined {
    const wanted = memberOf(owner);
    if (wanted === this.#self.owner) return undefined;
    const living = [...this.#estates.values()].filter(({ id }) => !this.#hasEnded(id));
    const isMade = ({ owner }: MemberName): boolean => owner === 0;
    return living.find((each) => each.owner === wanted) ?? living.find(isMade);
  }

  #finish({ id, told }: Grave): void {
    const dead = this.#estates.get(id);
    this.#estates.delete(id);
    this.#graves.delete(id);
    if (dead !== undefined) this.table.returnAll(dead.blocks);
    if (told === undefined) return;
    if (this.#self.owner === 0) this.table.memberEnded(told.owner);
    else callNative(() => this.table.native.unmapMember(told.owner));
  }
}
