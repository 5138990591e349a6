// Values of shared data as bytes. Their readers are unknown, so each has all definitions of functions and classes
// that it needs:
//
//   version u8 | definitions u32, each: id i32, size u32, bytes | value
//
// Shared memory is copied. Not here: signatures (cluster/data/).

import { ByteReader, ByteWriter, Codec } from '../channels/index.js';
import { createExporter, createImporter, type Exporter } from '../context/index.js';
import { CodedError, hasCode } from '../errors.js';
import { encodedOf } from '../worker/index.js';

/** Raised with every change of these bytes, or of the encoding by the context layer. */
const formatVersion = 1;
const maxDefinitions = 100_000;
const wayOut = 'another client or version of manycore wrote it: delete it, or use one version';

interface Definition {
  readonly id: number;
  readonly bytes: Uint8Array;
}

export class StoredValues {
  readonly #exporter = createExporter();
  readonly #codec: Codec;
  readonly #allowsCode: boolean;

  constructor(allowsCode: boolean) {
    this.#allowsCode = allowsCode;
    this.#codec = codecFor(this.#exporter);
  }

  /** `what`: the value in errors. Throws `CLUSTER_UNSIGNED`, `TRANSFER_…`. */
  encode(value: unknown, what: string): Buffer {
    const { bytes, definitions: ids, parcel } = this.#codec.pack(value);
    if (parcel !== undefined) {
      const message = `${what} has ports or other handles of this process: they cannot be stored`;
      throw new CodedError('TRANSFER_UNSUPPORTED', message);
    }
    if (ids.length > 0 && !this.#allowsCode) throw codeRefused(what);
    const definitions = ids.map((id) => ({ id, bytes: this.#exporter.definition(id) }));
    const headBytes = definitions.reduce((sum, each) => sum + 8 + each.bytes.byteLength, 5);
    const writer = new ByteWriter(Buffer.allocUnsafeSlow(headBytes + bytes.byteLength), false);
    writer.u8(formatVersion);
    writer.u32(definitions.length);
    for (const { id, bytes: definition } of definitions) {
      writer.i32(id);
      writer.u32(definition.byteLength);
      writer.raw(definition);
    }
    writer.raw(bytes);
    return writer.bytes;
  }

  /** Loads the modules that the value imports, and returns it. Rejects with `CLUSTER_UNSIGNED`, `TRANSFER_…`. */
  async decode(bytes: Uint8Array, what: string): Promise<unknown> {
    try {
      return await this.#decode(new ByteReader(Buffer.from(bytes)), what);
    } catch (cause) {
      if (!hasCode(cause, 'CHANNEL_FRAME_CORRUPT')) throw cause;
      throw corrupt(`${what} is incomplete: ${wayOut}`, cause);
    }
  }

  async #decode(reader: ByteReader, what: string): Promise<unknown> {
    const version = reader.u8();
    if (version !== formatVersion) {
      const formats = `the format ${version}, and this program reads ${formatVersion}`;
      throw corrupt(`${what} has ${formats}: ${wayOut}`);
    }
    const definitions = readDefinitions(reader, what);
    if (definitions.length === 0) return this.#codec.read(reader);
    if (!this.#allowsCode) throw codeRefused(what);
    // Ids are those of the writer: an importer of its own keeps them apart from those of other values.
    const importer = createImporter({ exporter: this.#exporter });
    for (const { id, bytes: definition } of definitions) await importer.define(id, definition);
    return codecFor(this.#exporter, (inner) => importer.importValue(inner)).read(reader);
  }
}

function codecFor(exporter: Exporter, decode?: (bytes: Uint8Array) => unknown): Codec {
  const importer = decode === undefined ? createImporter({ exporter }) : undefined;
  return new Codec({
    blocks: undefined,
    slow: {
      encode: (value) => encodedOf(exporter.exportValue(value, 'the value')),
      decode: decode ?? ((bytes) => importer?.importValue(bytes)),
    },
  });
}

function readDefinitions(reader: ByteReader, what: string): Definition[] {
  const count = reader.u32();
  if (count > maxDefinitions) throw corrupt(`${what} has ${count} definitions`);
  const definitions: Definition[] = [];
  for (let at = 0; at < count; at += 1) {
    const id = reader.i32();
    definitions.push({ id, bytes: reader.copy(reader.u32()) });
  }
  return definitions;
}

function corrupt(message: string, cause?: unknown): CodedError {
  return new CodedError('TRANSFER_CORRUPT', message, cause === undefined ? {} : { cause });
}

function codeRefused(what: string): CodedError {
  const message = `${what} has functions or classes in it: they are stored in a cluster only with a secret`;
  return new CodedError('CLUSTER_UNSIGNED', `${message}, cluster({ secret })`);
}
