// Values on their way through a cluster. A frame brings all that its value needs, because nobody knows who
// will read it: definitions of functions and classes too, which whoever has them from this sender skips.
// Shared memory is copied. Not here: what a frame is (protocol.ts).

import { type ByteReader, Codec } from '../channels/index.js';
import { createExporter, createImporter, type Exporter, type Importer } from '../context/index.js';
import { CodedError } from '../errors.js';
import { encodedOf } from '../host/index.js';
import { guarded } from './guarded.js';
import { type FrameDefinition, readDefinitions } from './protocol.js';

export interface EncodedValue {
  readonly bytes: Uint8Array;
  readonly definitions: readonly FrameDefinition[];
}

function codecFor(exporter: Exporter, decode: (bytes: Uint8Array) => unknown): Codec {
  return new Codec({
    blocks: undefined,
    slow: {
      encode: (value) => encodedOf(exporter.exportValue(value, 'the message')),
      decode,
    },
  });
}

function codeRefused(what: string): CodedError {
  const message = `${what} has functions or classes in it: they travel in a cluster only with a secret`;
  return new CodedError('CLUSTER_UNSIGNED', `${message}, cluster({ secret })`);
}

export class ClusterValues {
  readonly #exporter = createExporter();
  readonly #codec: Codec;
  /** Whether code may be sent and taken. */
  readonly #hasSecret: boolean;

  constructor(hasSecret: boolean) {
    this.#hasSecret = hasSecret;
    this.#codec = codecFor(this.#exporter, () => undefined);
  }

  /** Throws `CLUSTER_UNSIGNED`, `TRANSFER_…`. */
  encode(value: unknown): EncodedValue {
    const { bytes, definitions } = this.#codec.pack(value);
    if (definitions.length > 0 && !this.#hasSecret) throw codeRefused('the message');
    return {
      bytes,
      definitions: definitions.map((id) => ({ id, bytes: this.#exporter.definition(id) })),
    };
  }

  /** For what one sender sends. */
  reader(): SenderValues {
    return new SenderValues(this.#exporter, this.#hasSecret);
  }
}

export class SenderValues {
  readonly #importer: Importer;
  readonly #codec: Codec;
  readonly #hasSecret: boolean;
  readonly #known = new Set<number>();
  /** What came while modules of a definition are loaded. */
  #held: (() => void)[] | undefined;
  #loading: Promise<void> | undefined;

  constructor(exporter: Exporter, hasSecret: boolean) {
    const importer = createImporter({ exporter });
    this.#importer = importer;
    this.#codec = codecFor(exporter, (bytes) => importer.importValue(bytes));
    this.#hasSecret = hasSecret;
  }

  /**
   * Calls `use` with what is left of a frame and what reads its value: now, or once modules are loaded that
   * it, or one before it, needs. Throws `CLUSTER_UNSIGNED`, `TRANSFER_…`, `CHANNEL_FRAME_CORRUPT`.
   */
  receive(reader: ByteReader, use: (read: () => unknown) => void): void {
    const definitions = readDefinitions(reader);
    if (definitions.length > 0 && !this.#hasSecret) throw codeRefused('a frame');
    this.#inTurn(() => this.#learn(definitions));
    this.#inTurn(() => use(() => this.#codec.read(reader)));
  }

  #inTurn(work: () => void): void {
    if (this.#held === undefined) work();
    else this.#held.push(() => guarded(work));
  }

  #learn(definitions: readonly FrameDefinition[]): void {
    const loading: Promise<void>[] = [];
    for (const { id, bytes } of definitions) {
      if (this.#known.has(id)) continue;
      this.#known.add(id);
      const loaded = this.#importer.define(id, bytes);
      if (loaded !== undefined) loading.push(loaded);
    }
    if (loading.length === 0) return;
    this.#held = [];
    // One that failed is reported by reading what needs it.
    this.#loading = Promise.allSettled(loading).then(() => {
      const held = this.#held ?? [];
      this.#held = undefined;
      this.#loading = undefined;
      for (const work of held) this.#inTurn(work);
    });
  }

  /** Resolves when nothing of what has come waits for modules. */
  async settled(): Promise<void> {
    while (this.#loading !== undefined) await this.#loading;
  }
}
