// This thread's handle on an arena, shared by all channels that use it: the parent's own for every
// host, or in a host the one it was given. Released when the last channel is gone and no block is
// referred to any more; then the descriptor is closed. Not here: who holds a block (blocks.ts).

import { callNative, type NativeArena, requireNative } from '../../native.js';
import { BlockTable } from './blocks.js';

/** An arena in use by this thread. */
export interface ArenaShare {
  readonly native: NativeArena;
  readonly table: BlockTable;
  /** One user less; call it once for each `shareParentArena` or `adoptArena`. */
  leave(): void;
}

class SharedArena {
  readonly native: NativeArena;
  readonly table: BlockTable;
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
  }

  join(): ArenaShare {
    this.#userCount++;
    let hasLeft = false;
    return {
      native: this.native,
      table: this.table,
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

let ofProcess: SharedArena | undefined;

/** The arena in which this thread is the parent (owner 0); the same for all threads of the process. */
export function shareParentArena(): ArenaShare {
  if (ofProcess === undefined) {
    const onCollected = () => arena.table.onCollected();
    const native = callNative(() => requireNative().NativeArena.ofProcess(onCollected));
    const arena = new SharedArena(native, 0, () => {
      ofProcess = undefined;
    });
    ofProcess = arena;
  }
  return ofProcess.join();
}

/** The arena that a parent passed as descriptor `fd`, which is taken over. */
export function adoptArena(fd: number, owner: number): ArenaShare {
  const onCollected = () => arena.table.onCollected();
  const native = callNative(() => requireNative().NativeArena.open(fd, owner, onCollected));
  const arena = new SharedArena(native, owner);
  return arena.join();
}
