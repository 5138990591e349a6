// Values on their way through a cluster. A frame brings all that its value needs, because nobody knows who
// will read it: definitions of functions and classes too, which whoever has them from this sender skips.
// Shared memory is copied. Not here: what a frame is (protocol.ts).

import { type ByteReader, Codec } from '../channels/index.js';
import {
  createExporter,
  createImporter,
  type Exporter,
  type Importer,
  reduceError,
} from '../context/index.js';
import { CodedError } from '../errors.js';
import { announcements, beforeDeadline, messageOf } from '../internal/index.js';
import { encodedOf } from '../worker/index.js';
import { refused } from './errors.js';
import { guarded } from './listen.js';
import { type FrameDefinition, readDefinitions } from './protocol.js';

/** What waits while a module is loaded that a loop's functions import. */
export interface LoadingLimits {
  /** Then what needs it is refused, and the rest goes on. */
  readonly loadingMs: number;
  /** More of one loop are refused. */
  readonly frames: number;
  readonly bytes: number;
}

const defaultLimits: LoadingLimits = Object.freeze({
  loadingMs: 10_000,
  frames: 10_000,
  bytes: 2 ** 24,
});

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
  readonly #exporter: Exporter;
  readonly #codec: Codec;
  /** Whether code may be sent and taken. */
  readonly #hasSecret: boolean;

  readonly #limits: LoadingLimits;

  /** `ownsCode`: what is read was made for this program, see `createExporter`. */
  constructor(hasSecret: boolean, { limits = defaultLimits, ownsCode = false } = {}) {
    this.#exporter = createExporter({ ownsCode });
    this.#hasSecret = hasSecret;
    this.#limits = limits;
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

  /** What was thrown, as much of it as can travel. */
  encodeThrown(error: unknown): EncodedValue {
    const forms = [() => error, () => reduceError(this.#exporter, error)];
    for (const form of forms) {
      try {
        return this.encode(form());
      } catch {
        // the next one has less in it
      }
    }
    return this.encode(new Error(messageOf(error)));
  }

  /** For what one sender sends. */
  reader(): SenderValues {
    return new SenderValues(this.#exporter, this.#hasSecret, this.#limits);
  }
}

interface HeldFrame {
  readonly sizeBytes: number;
  readonly definitions: readonly FrameDefinition[];
  readonly use: () => void;
  /** Its definitions are known, and perhaps being loaded. */
  isLearned: boolean;
}

export class SenderValues {
  readonly #importer: Importer;
  readonly #codec: Codec;
  readonly #hasSecret: boolean;
  readonly #limits: LoadingLimits;
  readonly #known = new Set<number>();
  /** What came while modules are loaded, in order. */
  readonly #held: HeldFrame[] = [];
  #heldBytes = 0;
  /** Then there is a frame that waits for it. */
  #loading: Promise<void> | undefined;

  constructor(exporter: Exporter, hasSecret: boolean, limits: LoadingLimits) {
    const importer = createImporter({ exporter });
    this.#importer = importer;
    this.#codec = codecFor(exporter, (bytes) => importer.importValue(bytes));
    this.#hasSecret = hasSecret;
    this.#limits = limits;
  }

  /**
   * Calls `use` with what reads the value of a frame: now, or once modules are loaded that it, or one before
   * it, needs. Throws `CLUSTER_UNSIGNED`, `CLUSTER_REFUSED` where too many wait for that, `TRANSFER_…`,
   * `CHANNEL_FRAME_CORRUPT`.
   */
  receive(reader: ByteReader, use: (read: () => unknown) => void): void {
    const sizeBytes = reader.limit;
    const definitions = readDefinitions(reader);
    if (definitions.length > 0 && !this.#hasSecret) throw codeRefused('a frame');
    const useFrame = (): void => use(() => this.#codec.read(reader));
    const isFirst = this.#held.length === 0;
    if (isFirst) this.#learn(definitions);
    else this.#checkRoom(sizeBytes);
    if (isFirst && this.#loading === undefined) useFrame();
    else this.#hold({ sizeBytes, definitions, use: useFrame, isLearned: isFirst });
  }

  #checkRoom(sizeBytes: number): void {
    const { frames, bytes } = this.#limits;
    const count = this.#held.length;
    if (count < frames && this.#heldBytes + sizeBytes <= bytes) return;
    throw refused(
      `${count} frames of a loop wait for a module that it imports: one more is refused`,
    );
  }

  #hold(frame: HeldFrame): void {
    this.#held.push(frame);
    this.#heldBytes += frame.sizeBytes;
  }

  #learn(definitions: readonly FrameDefinition[]): void {
    const loading: Promise<void>[] = [];
    for (const { id, bytes } of definitions) {
      if (this.#known.has(id)) continue;
      this.#known.add(id);
      const loaded = this.#importer.define(id, bytes);
      if (loaded !== undefined) loading.push(loaded);
    }
    if (loading.length > 0) this.#loading = this.#load(loading);
  }

  /** One that failed is reported by reading what needs it, as is one that comes too late. */
  async #load(loading: readonly Promise<void>[]): Promise<void> {
    const deadlineMs = this.#limits.loadingMs;
    const onDeadline = (): Error =>
      refused(
        `a module that functions of another loop import has not been loaded within ${deadlineMs} ms: ` +
          'what needs it is refused until it is',
      );
    await beforeDeadline(Promise.allSettled(loading), { deadlineMs, onDeadline }).catch(
      (error: unknown) => announcements.clusterRefused.publish({ why: messageOf(error) }),
    );
    this.#loading = undefined;
    this.#goOn();
  }

  #goOn(): void {
    while (this.#loading === undefined) {
      const [first] = this.#held;
      if (first === undefined) return;
      if (first.isLearned) {
        this.#held.shift();
        this.#heldBytes -= first.sizeBytes;
        guarded(first.use);
      } else {
        first.isLearned = true;
        guarded(() => this.#learn(first.definitions));
      }
    }
  }

  /** Resolves when nothing of what has come waits for modules. */
  async settled(): Promise<void> {
    while (this.#loading !== undefined) await this.#loading;
  }
}
