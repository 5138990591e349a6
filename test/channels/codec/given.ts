// Helpers of the codec's tests: a codec with a visible slow half, and blocks on the heap.

import assert from 'node:assert/strict';
import {
  type Block,
  type BlockStore,
  ByteReader,
  ByteWriter,
  Codec,
  type SlowCodec,
} from '../../../src/channels/index.js';

/** Encodes anything as its place in a list. */
export function listCodec(): SlowCodec & { readonly values: unknown[] } {
  const values: unknown[] = [];
  return {
    values,
    encode: (value) => {
      const bytes = Buffer.from([values.push(value) - 1]);
      return { bytes, definitions: [7], blocks: [] };
    },
    decode: (bytes) => values[bytes[0] ?? -1],
  };
}

export const refusingCodec: SlowCodec = {
  encode: () => assert.fail('this value needs no slow codec'),
  decode: () => assert.fail('these bytes need no slow codec'),
};

/** A codec without shared memory, for plain data alone. */
export const plainCodec = new Codec({ blocks: undefined, slow: refusingCodec });

/** The bytes of `value`, which must be plain. */
export function written(value: unknown, codec = plainCodec): Buffer {
  const writer = ByteWriter.growing(16);
  assert.equal(codec.tryWrite(writer, value), true, 'is plain data');
  return writer.copyFrom(0);
}

/** Returns the value that arrives; the reader must end where the writer did. */
export function roundTrip(value: unknown, codec = plainCodec): unknown {
  const reader = new ByteReader(written(value, codec));
  const arrived = codec.read(reader);
  assert.equal(reader.position, reader.limit, 'all bytes are read');
  return arrived;
}

/** Blocks on the heap that count their holders. */
export class HeapBlocks implements BlockStore {
  readonly thresholdBytes = 1000;
  readonly borrowedBytes = 0;
  /** Memory by offset; its holders are the sender's holds and the references of peers. */
  readonly memory = new Map<number, ArrayBuffer>();
  holds = 0;
  lent = 0;
  isFull = false;
  readonly #shared = new Map<ArrayBufferLike, number>();
  #nextOffset = 0;

  handleUnused(): void {}

  #add(buffer: ArrayBuffer): number {
    const offset = this.#nextOffset;
    this.#nextOffset += 4096 * Math.ceil(buffer.byteLength / 4096);
    this.memory.set(offset, buffer);
    return offset;
  }

  place(view: Uint8Array): Block | undefined {
    if (this.isFull) return undefined;
    this.holds += 1;
    const shared = this.#shared.get(view.buffer);
    if (shared !== undefined) {
      return { owner: 0, offset: shared, sizeBytes: view.buffer.byteLength };
    }
    const copy = new Uint8Array(view).buffer;
    return { owner: 0, offset: this.#add(copy), sizeBytes: view.byteLength };
  }

  allocate(sizeBytes: number): ArrayBuffer {
    const buffer = new ArrayBuffer(sizeBytes);
    this.#shared.set(buffer, this.#add(buffer));
    return buffer;
  }

  sharedBlock(buffer: ArrayBufferLike): Block | undefined {
    const offset = this.#shared.get(buffer);
    return offset === undefined ? offset : { owner: 0, offset, sizeBytes: buffer.byteLength };
  }

  hold(): void {
    this.holds += 1;
  }

  release(): void {
    this.holds -= 1;
  }

  lend(): void {
    this.lent += 1;
  }

  takeBack(_block: Block, count: number): void {
    this.lent -= count;
  }

  returnAll(): void {
    this.lent = 0;
  }

  borrow(block: Block): ArrayBuffer {
    const buffer = this.memory.get(block.offset);
    assert.ok(buffer !== undefined && block.sizeBytes === buffer.byteLength);
    return buffer;
  }
}
