// What a consumer in the sender's own loop gets of a body: a copy that nobody else can change, as if it
// had come from another loop; memory of `shared()` is the same memory, as it would be there. Functions and
// classes are themselves again: they were sent to where they came from.

import { type BlockStore, ByteReader, Codec, isImmutable } from '../channels/index.js';
import { createImporter } from '../context/index.js';
import { encodedOf, parentBuffers, parentExporter } from '../worker/index.js';

/** Makes such copies; throws `TRANSFER_…` for what cannot travel. */
export function createCopy(): (body: unknown) => unknown {
  const exporter = parentExporter();
  const importer = createImporter({ exporter, buffers: parentBuffers });
  const known = new Set<number>();
  const codecOf = (blocks: BlockStore | undefined): Codec =>
    new Codec({
      blocks,
      slow: {
        encode: (value) => encodedOf(exporter.exportValue(value, 'the message')),
        decode: (bytes) => importer.importValue(bytes),
      },
    });
  // A thread has an arena as long as it needs one, and may have another later.
  let blocks: BlockStore | undefined;
  let codec = codecOf(blocks);
  return (body) => {
    if (isImmutable([body])) return body;
    if (blocks !== parentBuffers.blocks) {
      blocks = parentBuffers.blocks;
      codec = codecOf(blocks);
    }
    const packed = codec.pack(body);
    try {
      for (const id of packed.definitions) {
        if (known.has(id)) continue;
        known.add(id);
        // What this process can send it has loaded: nothing is to be waited for.
        void importer.define(id, exporter.definition(id));
      }
      return codec.read(new ByteReader(Buffer.from(packed.bytes)));
    } finally {
      codec.release(packed);
    }
  };
}
