// What a consumer in the sender's own loop gets of a body: a copy that nobody else can change, as if it
// had come from another loop. Functions and classes are themselves again: they were sent to where they
// came from.

import { ByteReader, Codec, isImmutable } from '../channels/index.js';
import { createImporter } from '../context/index.js';
import { encodedOf, parentBuffers, parentExporter } from '../host/index.js';

/** Makes such copies; throws `TRANSFER_…` for what cannot travel. */
export function createCopy(): (body: unknown) => unknown {
  const exporter = parentExporter();
  const importer = createImporter({ exporter, buffers: parentBuffers });
  const known = new Set<number>();
  const codec = new Codec({
    blocks: undefined,
    peer: 0,
    slow: {
      encode: (value) => encodedOf(exporter.exportValue(value, 'the message')),
      decode: (bytes) => importer.importValue(bytes),
    },
  });
  return (body) => {
    if (isImmutable([body])) return body;
    const { bytes, definitions } = codec.pack(body);
    for (const id of definitions) {
      if (known.has(id)) continue;
      known.add(id);
      // What this process can send it has loaded: nothing is to be waited for.
      void importer.define(id, exporter.definition(id));
    }
    return codec.read(new ByteReader(Buffer.from(bytes)));
  };
}
