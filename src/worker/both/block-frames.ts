// The body of frames that return references to a block, or pass them on.

import type { Block, BodyWriter, ByteReader } from '../../channels/index.js';

interface References {
  readonly block: Block;
  readonly count: number;
}

export const writeBlock: BodyWriter<References> = (writer, { block, count }) => {
  writer.i32(block.owner);
  writer.f64(block.offset);
  writer.f64(block.sizeBytes);
  writer.f64(count);
  return true;
};

export function readBlock(body: ByteReader): References {
  const block = { owner: body.i32(), offset: body.f64(), sizeBytes: body.f64() };
  return { block, count: body.f64() };
}
