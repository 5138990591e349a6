// This thread's handle on an arena, shared by all channels that use it. In a parent it is one for all
// workers: its process's own, or the one that it joined as a member. In a worker it is the one that it was
// given. Released when the last channel is gone and no block is referred to any more; then the descriptor is
// closed.
// Not here: references to blocks (blocks.ts).

import { callNative, type NativeArena, requireNative } from '../../native.js';
import { BlockTable, ShmBlocks } from './blocks.js';

/** An arena in use by this thread. */
export interface ArenaShare {
  readonly native: NativeArena;
  readonly table: BlockTable;
  /** The blocks for users other than channels. */
  readonly blocks: ShmBlocks;
  /** Adds a user. */
  share(): ArenaShare;
  /** Removes a user; call it once for each share. */
  leave(): void;
}

class SharedArena {
  readonly native: NativeArena;
  readonly table: BlockTable;
  readonly blocks: ShmBlocks;
  readonly #onRelease: () => void;
  readonly #waitsForBlocks: boolean;
  #userCount = 0;
  #isReleased = false;

  /** A parent keeps its arena while a block is held: a new channel may want to send it. */
  constructor(native: NativeArena, owner: number, onRelease?: () => void) {
    this.native = native;
    this.#onRelease = onRelease ?? (() => {});
    this.#waitsForBlocks = onRelease !== undefined;
    this.table = new BlockTable(native, owner, () => this.#releaseWhenUnused());
    this.blocks = new ShmBlocks(this.table);
  }

  join(): ArenaShare {
    this.#userCount++;
    let hasLeft = false;
    return {
      native: this.native,
      table: this.table,
      blocks: this.blocks,
      share: () => this.join(),
      leave: () => {
        if (hasLeft) return;
        hasLeft = true;
        this.#userCount--;
        this.#releaseWhenUnused();
      },
    };
  }

  #releaseWhenUnused(): void {
    if (this.#isReleased || this.#userCount > 0) return;
    if (this.#waitsForBlocks && this.table.blockCount > 0) return;
    this.#isReleased = true;
    this.#onRelease();
    this.table.close();
  }
}

let ofThread: SharedArena | undefined;

function becomeParent(open: (onCollected: () => void) => NativeArena, owner: number): SharedArena {
  const onCollected = () => arena.table.onCollected();
  const native = callNative(() => open(onCollected));
  const arena = new SharedArena(native, owner, () => {
    if (ofThread === arena) ofThread = undefined;
  });
  ofThread = arena;
  return arena;
}

/**
 * Returns the arena in which this thread is the parent: the one that it has joined, or (owner 0) that of its
 * process, the same for all threads that have joined none.
 */
export function shareParentArena(): ArenaShare {
  const arena =
    ofThread ??
    becomeParent((onCollected) => requireNative().NativeArena.ofProcess(onCollected), 0);
  return arena.join();
}

/** Returns blocks of that arena for a user other than a channel; `undefined` while there is none. */
export function parentBlocks(): ShmBlocks | undefined {
  return ofThread?.blocks;
}

/**
 * Makes this thread a parent in the arena behind `fd`, which is taken over, with the numbers of a member from
 * `owner` on.
 */
export function joinArena(fd: number, owner: number): ArenaShare {
  const open = (onCollected: () => void) =>
    requireNative().NativeArena.join(fd, owner, onCollected);
  return becomeParent(open, owner).join();
}

/** Adopts the arena that a parent passed as descriptor `fd`, which is taken over. */
export function adoptArena(fd: number, owner: number): ArenaShare {
  const onCollected = () => arena.table.onCollected();
  const native = callNative(() => requireNative().NativeArena.open(fd, owner, onCollected));
  const arena = new SharedArena(native, owner);
  return arena.join();
}
