// Lets a snapshot of a value name shared memory instead of copying it: the context layer calls this carrier
// for every buffer it meets, and the arena recognises its own. A name alone keeps nothing: the holder of a
// snapshot holds its blocks while it may be sent, and lends them to the receiver.

import type { Block, BlockStore, Encoded } from '../../channels/index.js';
import {
  type BufferCarrier,
  type BufferName,
  isCloneable,
  isHandle,
  type ValueSnapshot,
} from '../../context/receiving.js';
import { CodedError } from '../../errors.js';
import type { Parcels } from './parcels.js';

/**
 * Returns a carrier over the arena that `store` returns, which may appear later than the carrier.
 * `parcels`: for a thread, which passes its results to its parent.
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

/** The buffer stays here, too. */
export const cloned = { moved: undefined };

const noBlocks: readonly Block[] = [];

/** Returns the blocks to which a carrier gave these names. */
export function blocksOf(names: readonly BufferName[]): readonly Block[] {
  return names.length === 0 ? noBlocks : names.map(blockOf);
}

function blockOf([owner = -1, offset = -1, sizeBytes = -1]: BufferName): Block {
  return { owner, offset, sizeBytes };
}

/** Returns a snapshot in the form that codecs take. */
export function encodedOf({ bytes, definitions, buffers, parcel }: ValueSnapshot): Encoded {
  return { bytes, definitions, blocks: blocksOf(buffers), parcel };
}
