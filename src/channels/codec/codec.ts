// Values in frames: the fast format for plain data, and an exit to the worker layer's slow codec for all
// other values. One codec per channel for sending and reading; one without a channel for `pack`.
// Not here: what can travel at all and in what bytes (the slow codec: context/).

import { ownOf, type Parcel } from '../../lib/index.js';
import { type ByteReader, ByteWriter } from '../bytes.js';
import type { Block, BlockStore } from '../types.js';
import { ValueReader } from './read.js';
import { TAG_SLOW } from './tags.js';
import { ValueWriter } from './write.js';

/** A value in bytes that name `blocks`, each once, and hold none of them. */
export interface Encoded {
  readonly bytes: Uint8Array;
  readonly definitions: readonly number[];
  readonly blocks: readonly Block[];
  /** Values to be posted beside the bytes. */
  readonly parcel?: Parcel | undefined;
}

/** Encodes values that are not plain data. Either function may throw: `TRANSFER_…`. */
export interface SlowCodec {
  /** `what`: the name of the value in errors; default: a usual one. */
  encode(value: unknown, what?: string): Encoded;
  decode(bytes: Uint8Array): unknown;
}

/** A value at one moment, for any peer. `blocks` are held until `Codec.release`. */
export interface Packed {
  readonly bytes: Uint8Array;
  /** Definitions that the peer must have before it reads this (context/); empty for plain data. */
  readonly definitions: readonly number[];
  /** To be lent to each peer that this is sent to: `lend` of its channel's `BlockStore`. */
  readonly blocks: readonly Block[];
  /** To be posted before each frame with these bytes. */
  readonly parcel?: Parcel | undefined;
}

export interface CodecOptions {
  /** Blocks of the channel; a codec with those of no channel can only pack and read. */
  readonly blocks: BlockStore | undefined;
  readonly slow: SlowCodec;
  /** Smallest copy that goes into a block; `Infinity`: none does. Absent: the limit of `blocks`. */
  readonly thresholdBytes?: number;
  /** False: forged values must not take much more memory than their bytes. Default: true. */
  readonly isTrusted?: boolean;
}

const noBlocks: readonly Block[] = [];
/** A pack buffer that grew past this is given back, in bytes. */
const keptPackBytes = 256 * 1024;

export class Codec {
  readonly #blocks: BlockStore | undefined;
  readonly #slow: SlowCodec;
  readonly #values: ValueWriter;
  readonly #reader: ValueReader;
  #lent: readonly Block[];
  #packWriter: ByteWriter | undefined;

  constructor(options: CodecOptions) {
    this.#blocks = options.blocks;
    this.#slow = options.slow;
    this.#values = new ValueWriter(options.blocks, ownOf(options).thresholdBytes);
    this.#reader = new ValueReader(
      options.blocks,
      (bytes) => options.slow.decode(bytes),
      ownOf(options).isTrusted !== false,
    );
    this.#lent = noBlocks;
    this.#packWriter = undefined;
  }

  /**
   * Writes plain data; false, with the writer as it was, for any other value: `pack` that. Blocks
   * are lent to the peer at once, so the value belongs last in its frame; when the frame was not
   * `sent` after all, call `unsend`.
   */
  tryWrite(writer: ByteWriter, value: unknown): boolean {
    if (this.#lent.length > 0) this.#lent = noBlocks;
    if (!this.#values.tryWrite(writer, value)) return false;
    if (this.#values.placed.length > 0) this.#lend();
    return true;
  }

  #lend(): void {
    try {
      for (const block of this.#values.placed) this.#blocks?.lend(block);
      this.#lent = [...this.#values.placed];
    } finally {
      this.#values.releasePlaced();
    }
  }

  /** The last `tryWrite` is not on its way (`full`, `refused`, `closed`): takes its blocks back. */
  unsend(): void {
    for (const block of this.#lent) this.#blocks?.takeBack(block, 1);
    this.#lent = noBlocks;
  }

  /** Packs `value` as it is now; `what` is for the slow codec. Throws what that throws. */
  pack(value: unknown, what?: string): Packed {
    // Taken while in use: a getter may pack as well.
    const writer = this.#packWriter ?? ByteWriter.growing();
    this.#packWriter = undefined;
    writer.reset(0, writer.bytes.byteLength);
    if (!this.#values.tryWrite(writer, value))
      return this.packEncoded(this.#slow.encode(value, what));
    const isKept = writer.bytes.byteLength <= keptPackBytes;
    const bytes = isKept ? writer.copyFrom(0) : writer.bytes.subarray(0, writer.position);
    const placed = this.#values.placed;
    const blocks = placed.length === 0 ? noBlocks : [...placed];
    placed.length = 0;
    if (isKept) this.#packWriter = writer;
    return { bytes, definitions: [], blocks, parcel: undefined };
  }

  /** Packs a value that was encoded as by the slow codec. */
  packEncoded(slow: Encoded): Packed {
    const bytes = Buffer.allocUnsafeSlow(5 + slow.bytes.byteLength);
    bytes[0] = TAG_SLOW;
    bytes.writeUInt32LE(slow.bytes.byteLength, 1);
    bytes.set(slow.bytes, 5);
    for (const block of slow.blocks) this.#blocks?.hold(block);
    return { bytes, definitions: slow.definitions, blocks: slow.blocks, parcel: slow.parcel };
  }

  /** Writes a packed value where a value may stand. Never false. */
  writePacked(writer: ByteWriter, packed: Packed): boolean {
    writer.raw(packed.bytes);
    return true;
  }

  /** Gives up the blocks of a packed value: it will not be sent again. Once per `Packed`. */
  release(packed: Packed): void {
    for (const block of packed.blocks) this.#blocks?.release(block);
  }

  /** Reads the next value. Input: throws CHANNEL_FRAME_CORRUPT, or what the slow codec throws. */
  read(reader: ByteReader): unknown {
    return this.#reader.readWhole(reader);
  }
}

/**
 * True: no code can change any of these before they are written, so they need no snapshot, and `tryWrite`
 * takes them. A symbol cannot change either, but the slow codec writes it.
 */
export function isImmutable(values: readonly unknown[]): boolean {
  for (const value of values) {
    const type = typeof value;
    if (type === 'object' ? value !== null : type === 'function' || type === 'symbol') return false;
  }
  return true;
}
