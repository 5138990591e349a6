// Bodies for consumers in the sender's own loop: copies that nobody else can change, as if they had come from
// another loop. Memory of `shared()` is the same memory, as in another loop. Functions and classes are the
// originals: they came back to where they are from.

import { type BlockStore, ByteReader, Codec, isImmutable } from '../../channels/index.js';
import { createImporter } from '../../context/index.js';
import { encodedOf, parentBuffers, parentExporter } from '../../worker/index.js';

/** Returns a function that makes such copies; it throws `TRANSFER_…` for what cannot travel. */
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
  // A thread has an arena only while it needs one, and may have another later.
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
        // Everything that this process can send is loaded already: no promise to wait for.
        void importer.define(id, exporter.definition(id));
      }
      return codec.read(new ByteReader(Buffer.from(packed.bytes)));
    } finally {
      codec.release(packed);
    }
  };
}
