// Lets a snapshot of a value name shared memory instead of copying it: the context layer asks this
// carrier about every buffer it meets, and the arena knows its own.

import type { BlockStore } from '../channels/index.js';
import type { BufferCarrier } from '../context/index.js';
import { CodedError } from '../errors.js';

/** A carrier over the arena that `store` returns, which may appear later than the carrier. */
export function bufferCarrier(store: () => BlockStore | undefined): BufferCarrier {
  return {
    name(buffer) {
      const blocks = store();
      if (blocks === undefined || !blocks.isShared(buffer)) return undefined;
      const block = blocks.place(new Uint8Array(buffer));
      return block && [block.owner, block.offset, block.sizeBytes];
    },
    find([owner = -1, offset = -1, sizeBytes = -1]) {
      const blocks = store();
      if (blocks === undefined) {
        throw new CodedError(
          'CHANNEL_UNAVAILABLE',
          'memory made by shared() came without a channel over shared memory: use channel "shm"',
        );
      }
      return blocks.borrow({ owner, offset, sizeBytes }, true);
    },
  };
}
