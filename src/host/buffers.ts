// Lets a snapshot of a value name shared memory instead of copying it: the context layer asks this
// carrier about every buffer it meets, and the arena knows its own. A name alone keeps nothing: who
// has the snapshot holds its blocks while it may be sent, and lends them to whom it is sent.

import type { Block, BlockStore, Encoded } from '../channels/index.js';
import type { BufferCarrier, BufferName, ValueSnapshot } from '../context/index.js';
import { CodedError } from '../errors.js';

/** A carrier over the arena that `store` returns, which may appear later than the carrier. */
export function bufferCarrier(store: () => BlockStore | undefined): BufferCarrier {
  return {
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

const noBlocks: readonly Block[] = [];

/** The blocks that a carrier gave these names. */
export function blocksOf(names: readonly BufferName[]): readonly Block[] {
  return names.length === 0 ? noBlocks : names.map(blockOf);
}

function blockOf([owner = -1, offset = -1, sizeBytes = -1]: BufferName): Block {
  return { owner, offset, sizeBytes };
}

/** A snapshot as codecs take it. */
export function encodedOf({ bytes, definitions, buffers }: ValueSnapshot): Encoded {
  return { bytes, definitions, blocks: blocksOf(buffers) };
}
