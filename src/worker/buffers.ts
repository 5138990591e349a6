// Lets a snapshot of a value name shared memory instead of copying it: the context layer asks this
// carrier about every buffer it meets, and the arena knows its own. A name alone keeps nothing: who
// has the snapshot holds its blocks while it may be sent, and lends them to whom it is sent.

import type { Block, BlockStore, Encoded } from '../channels/index.js';
import {
  type BufferCarrier,
  type BufferName,
  isCloneable,
  isHandle,
  type ValueSnapshot,
} from '../context/index.js';
import { CodedError } from '../errors.js';
import type { Parcels } from './parcels.js';

/**
 * A carrier over the arena that `store` returns, which may appear later than the carrier. `parcels`: of a
 * thread, which gives what it returns to its parent.
 */
export function bufferCarrier(
  store: () => BlockStore | undefined,
  parcels?: Parcels,
): BufferCarrier {
  return {
    ...(parcels && {
      carry: (value: object) => {
        if (isHandle(value)) return { moved: value };
        return isCloneable(value) ? cloned : undefined;
      },
      open: (id: number) => parcels.take(id),
    }),
    name(buffer) {
      const block = store()?.sharedBlock(buffer);
      return block && [block.owner, block.offset, block.sizeBytes];
    },
    find(name) {
      const blocks = store();
      if (blocks === undefined) {
        throw new CodedError(
          'CHANNEL_UNAVAILABLE',
          'memory made by shared() came without a channel over shared memory: use channel "shm"',
        );
      }
      return blocks.borrow(blockOf(name), true);
    },
  };
}

/** Stays here, too. */
export const cloned = { moved: undefined };

const noBlocks: readonly Block[] = [];

/** The blocks that a carrier gave these names. */
export function blocksOf(names: readonly BufferName[]): readonly Block[] {
  return names.length === 0 ? noBlocks : names.map(blockOf);
}

function blockOf([owner = -1, offset = -1, sizeBytes = -1]: BufferName): Block {
  return { owner, offset, sizeBytes };
}

/** A snapshot as codecs take it. */
export function encodedOf({ bytes, definitions, buffers, parcel }: ValueSnapshot): Encoded {
  return { bytes, definitions, blocks: blocksOf(buffers), parcel };
}
