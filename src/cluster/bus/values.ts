// Values on their way through a cluster. The reader of a frame is unknown, so a frame includes all
// definitions of functions and classes that its value needs. A reader skips those that it has from the same
// sender. Shared memory is copied. Not here: the layout of frames (protocol.ts).

import { type ByteReader, Codec } from '../../channels/index.js';
import {
  createExporter,
  createImporter,
  type Exporter,
  type Importer,
  reduceError,
  withVersion,
} from '../../context/index.js';
import { CodedError } from '../../errors.js';
import { announcements, beforeDeadline, messageOf } from '../../lib/index.js';
import { encodedOf } from '../../worker/index.js';
import { refused } from '../errors.js';
import { guarded } from '../nats/listen.js';
import { type FrameDefinition, readDefinitions } from '../protocol.js';

/** Limits for frames that wait while a module loads that a loop's functions import. */
export interface LoadingLimits {
  /** After this time values that need the module are refused, and the rest continues. */
  readonly loadingMs: number;
  /** Limits of the waiting frames of one loop; more are refused. */
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
  /** Bytes by id. */
  readonly #definitions = new Map<number, Uint8Array>();
  readonly #codec: Codec;
  /** True: code may be sent and accepted. */
  readonly #hasSecret: boolean;

  readonly #limits: LoadingLimits;

  /** `ownsCode`: values read here were made for this program, see `createExporter`. */
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
      definitions: definitions.map((id) => ({ id, bytes: this.#definition(id) })),
    };
  }

  /** Returns the bytes of a definition, with the version that a module had when it was sent first. */
  #definition(id: number): Uint8Array {
    const bytes = this.#definitions.get(id) ?? withVersion(this.#exporter.definition(id));
    this.#definitions.set(id, bytes);
    return bytes;
  }

  /** Encodes a thrown error, as much of it as can travel. */
  encodeThrown(error: unknown): EncodedValue {
    const forms = [() => error, () => reduceError(this.#exporter, error)];
    for (const form of forms) {
      try {
        return this.encode(form());
      } catch {
        // the next form contains less
      }
    }
    return this.encode(new Error(messageOf(error)));
  }

  /** Returns the reader for the values of one sender. */
  reader(): SenderValues {
    return new SenderValues(this.#exporter, this.#hasSecret, this.#limits);
  }
}

interface HeldFrame {
  readonly sizeBytes: number;
  readonly definitions: readonly FrameDefinition[];
  readonly use: () => void;
  /** True: its definitions are known, and perhaps loading. */
  isDefined: boolean;
}

export class SenderValues {
  readonly #importer: Importer;
  readonly #codec: Codec;
  readonly #hasSecret: boolean;
  readonly #limits: LoadingLimits;
  readonly #known = new Set<number>();
  /** Frames that arrived while modules load, in order. */
  readonly #held: HeldFrame[] = [];
  #heldBytes = 0;
  /** Resolves when the modules are loaded; set only while a frame waits for them. */
  #loading: Promise<void> | undefined;

  constructor(exporter: Exporter, hasSecret: boolean, limits: LoadingLimits) {
    const importer = createImporter({ exporter });
    this.#importer = importer;
    this.#codec = codecFor(exporter, (bytes) => importer.importValue(bytes));
    this.#hasSecret = hasSecret;
    this.#limits = limits;
  }

  /**
   * Calls `use` with a function that reads the value of a frame: now, or after the modules have loaded that
   * this frame or an earlier one needs. Throws `CLUSTER_UNSIGNED`, `CLUSTER_REFUSED` when too many frames
   * wait, `TRANSFER_…`, `CHANNEL_FRAME_CORRUPT`.
   */
  receive(reader: ByteReader, use: (read: () => unknown) => void): void {
    const sizeBytes = reader.limit;
    const definitions = readDefinitions(reader);
    if (definitions.length > 0 && !this.#hasSecret) throw codeRefused('a frame');
    const useFrame = (): void => use(() => this.#codec.read(reader));
    const isFirst = this.#held.length === 0;
    if (isFirst) this.#define(definitions);
    else this.#checkRoom(sizeBytes);
    if (isFirst && this.#loading === undefined) useFrame();
    else this.#hold({ sizeBytes, definitions, use: useFrame, isDefined: isFirst });
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

  #define(definitions: readonly FrameDefinition[]): void {
    const loading: Promise<void>[] = [];
    for (const { id, bytes } of definitions) {
      if (this.#known.has(id)) continue;
      this.#known.add(id);
      const loaded = this.#importer.define(id, bytes);
      if (loaded !== undefined) loading.push(loaded);
    }
    if (loading.length > 0) this.#loading = this.#load(loading);
  }

  /** Waits for modules. A failed or late module is reported by the read of a value that needs it. */
  async #load(loading: readonly Promise<void>[]): Promise<void> {
    const deadlineMs = this.#limits.loadingMs;
    const onDeadline = (): Error =>
      refused(
        `a module that functions of another loop import has not been loaded within ${deadlineMs} ms: ` +
          'values that need it are refused until then',
      );
    await beforeDeadline(Promise.allSettled(loading), { deadlineMs, onDeadline }).catch(
      (error: unknown) => announcements.clusterRefused.publish({ why: messageOf(error) }),
    );
    this.#loading = undefined;
    this.#resume();
  }

  #resume(): void {
    while (this.#loading === undefined) {
      const [first] = this.#held;
      if (first === undefined) return;
      if (first.isDefined) {
        this.#held.shift();
        this.#heldBytes -= first.sizeBytes;
        guarded(first.use);
      } else {
        first.isDefined = true;
        guarded(() => this.#define(first.definitions));
      }
    }
  }

  /** Resolves when no received frame waits for modules. */
  async settled(): Promise<void> {
    while (this.#loading !== undefined) await this.#loading;
  }
}
