// The byte format of values and definitions: V8's own serializer, after a number that selects the format of
// the rest. Array buffer views are written by us. So memory that has a name in every process travels as that
// name, and views of one buffer stay views of one buffer. Bytes come from another process: any invalid form
// of them ends in TRANSFER_CORRUPT. Short lists of primitive values need no serializer (scalars.ts).
// Not here: the meaning of a graph (encode.ts, decode.ts).

import { isSharedArrayBuffer } from 'node:util/types';
import v8 from 'node:v8';
import { CodedError } from '../errors.js';
import { descriptorOf, messageOf } from '../lib/index.js';
import { areScalars, readScalars, writeScalars } from './scalars.js';
import type { BufferCarrier, BufferName } from './types.js';
import { isResizable } from './values/plain.js';
import { adopt } from './values/realms.js';

/** Kinds of content after the header. */
export const format = {
  /** A value as V8 writes it. */
  plain: 0,
  /** A payload of encode.ts. */
  graph: 1,
  /** The values of a function's slots, in order, each plain. */
  slots: 2,
  /** A definition, see `Definition`. */
  definition: 3,
} as const;

export type Format = (typeof format)[keyof typeof format];

const viewTypes: readonly { name: string; bytesPerElement: number }[] = [
  { name: 'Buffer', bytesPerElement: 1 },
  { name: 'DataView', bytesPerElement: 1 },
  { name: 'Int8Array', bytesPerElement: 1 },
  { name: 'Uint8Array', bytesPerElement: 1 },
  { name: 'Uint8ClampedArray', bytesPerElement: 1 },
  { name: 'Int16Array', bytesPerElement: 2 },
  { name: 'Uint16Array', bytesPerElement: 2 },
  { name: 'Int32Array', bytesPerElement: 4 },
  { name: 'Uint32Array', bytesPerElement: 4 },
  { name: 'Float32Array', bytesPerElement: 4 },
  { name: 'Float64Array', bytesPerElement: 8 },
  { name: 'BigInt64Array', bytesPerElement: 8 },
  { name: 'BigUint64Array', bytesPerElement: 8 },
  { name: 'Float16Array', bytesPerElement: 2 },
];

/** Kinds of a view's memory. `shared`: bytes that other views of this value lie on, too. */
export const memory = { bytes: 0, shared: 1, seen: 2, named: 3 } as const;
/** In place of a size: the view extends to the end of its buffer, which can change its size. */
const tracksLength = 0xffff_ffff;

/** Bytes of a buffer, half-open. */
type Range = readonly [start: number, end: number];

const typedArrayTag = descriptorOf(
  Object.getPrototypeOf(Uint8Array.prototype),
  Symbol.toStringTag,
)?.get;

function viewTypeOf(view: ArrayBufferView): number {
  const tag: unknown =
    typedArrayTag === undefined ? undefined : Reflect.apply(typedArrayTag, view, []);
  if (tag === undefined) return 1;
  if (tag === 'Uint8Array' && Buffer.isBuffer(view)) return 0;
  return viewTypes.findIndex(({ name }) => name === tag);
}

const treatViewsAsHostObjects: unknown = Reflect.get(
  v8.Serializer.prototype,
  '_setTreatArrayBufferViewsAsHostObjects',
);

const noNames: readonly BufferName[] = Object.freeze([]);
const noRanges: ReadonlyMap<ArrayBufferLike, Range> = new Map();

class Writer extends v8.Serializer {
  readonly #buffers: BufferCarrier | undefined;
  readonly #sharedRanges: ReadonlyMap<ArrayBufferLike, Range>;
  #names: BufferName[] | undefined;
  /** The number of each buffer, and the offset in it at which the written bytes begin. */
  readonly #seen = new Map<ArrayBufferLike, readonly [number: number, start: number]>();
  /** The ranges that views need of buffers which were not written whole. */
  readonly #cut = new Map<ArrayBufferLike, { range: Range; isPool: boolean }>();
  /** Buffers whose views met after one of them was written alone, and the range that all of them need. */
  readonly split = new Map<ArrayBufferLike, Range>();

  constructor(buffers: BufferCarrier | undefined, shared: ReadonlyMap<ArrayBufferLike, Range>) {
    super();
    this.#buffers = buffers;
    this.#sharedRanges = shared;
    if (typeof treatViewsAsHostObjects === 'function') {
      Reflect.apply(treatViewsAsHostObjects, this, [true]);
    }
  }

  /** The memory that was written as its name, each once. */
  get names(): readonly BufferName[] {
    return this.#names ?? noNames;
  }

  // The name is Node's: the serializer calls it for every view.
  _writeHostObject(view: ArrayBufferView): void {
    if (!ArrayBuffer.isView(view)) throw new TypeError('cannot be cloned');
    const type = viewTypeOf(view);
    if (type < 0) throw new TypeError('cannot be cloned');
    const { buffer } = view;
    this.writeUint32(type);
    const seen = this.#seen.get(buffer);
    if (seen !== undefined) {
      this.writeUint32(memory.seen);
      this.writeUint32(seen[0]);
      this.#writeRange(view, seen[1]);
      return;
    }
    const name = this.#buffers?.name(buffer);
    if (name !== undefined) {
      this.#writeName(name);
      this.#remember(buffer, 0);
      this.#writeRange(view, 0);
      return;
    }
    if (isSharedArrayBuffer(buffer)) throw new TypeError('shared memory cannot be cloned');
    const range = this.#sharedRanges.get(buffer) ?? wholeBufferOf(view, type);
    if (range !== undefined) {
      if (this.#cut.has(buffer)) this.#note(view, type);
      this.#writeShared(buffer, range);
      this.#writeRange(view, range[0]);
    } else {
      const { byteOffset, byteLength } = view;
      this.#note(view, type);
      this.writeUint32(memory.bytes);
      this.writeUint32(byteLength);
      this.writeRawBytes(new Uint8Array(buffer, byteOffset, byteLength));
    }
  }

  /** Finds views of one buffer that were written apart. `Buffer`s of the pool are apart by nature. */
  #note({ buffer, byteOffset, byteLength }: ArrayBufferView, type: number): void {
    const isPool = type === 0;
    const range: Range = isPool ? [byteOffset, byteOffset + byteLength] : [0, buffer.byteLength];
    const other = this.#cut.get(buffer);
    if (other === undefined) {
      this.#cut.set(buffer, { range, isPool });
      return;
    }
    const areApart = isPool && other.isPool && range[0] >= other.range[1];
    const union: Range = [Math.min(range[0], other.range[0]), Math.max(range[1], other.range[1])];
    this.#cut.set(buffer, { range: union, isPool: isPool && other.isPool });
    if (!areApart || this.split.has(buffer)) this.split.set(buffer, union);
  }

  #writeShared(buffer: ArrayBuffer, [start, end]: Range): void {
    this.#remember(buffer, start);
    this.writeUint32(memory.shared);
    this.writeUint32(end - start);
    const maxBytes = isResizable(buffer) ? Number(Reflect.get(buffer, 'maxByteLength')) : -1;
    this.writeDouble(maxBytes);
    this.writeRawBytes(new Uint8Array(buffer, start, end - start));
  }

  #writeName(name: BufferName): void {
    this.#names ??= [];
    this.#names.push(name);
    this.writeUint32(memory.named);
    this.writeUint32(name.length);
    for (const part of name) this.writeDouble(part);
  }

  #remember(buffer: ArrayBufferLike, start: number): void {
    this.#seen.set(buffer, [this.#seen.size, start]);
  }

  #writeRange(view: ArrayBufferView, start: number): void {
    this.writeUint32(view.byteOffset - start);
    this.writeUint32(isTracking(view) ? tracksLength : view.byteLength);
  }
}

/**
 * The range of a buffer that is written with a view: all of it, so that other views of it meet there again.
 * Not for `Buffer`s (they share Node's pool), and not when a view shows a small part of much memory.
 */
function wholeBufferOf({ buffer, byteLength }: ArrayBufferView, type: number): Range | undefined {
  const isWhole = isResizable(buffer) || (type !== 0 && buffer.byteLength <= 2 * byteLength);
  return isWhole ? [0, buffer.byteLength] : undefined;
}

/** True: it changes its length with its buffer. Only a test on a copy can show that. */
function isTracking(view: ArrayBufferView): boolean {
  if (!isResizable(view.buffer)) return false;
  if (view.byteOffset + view.byteLength < view.buffer.byteLength - 7) return false;
  const copy = structuredClone(view);
  const { buffer, byteLength } = copy;
  const resize: unknown = Reflect.get(buffer, 'resize');
  if (typeof resize !== 'function') return false;
  const maxBytes = Number(Reflect.get(buffer, 'maxByteLength'));
  // By the largest element; a buffer that is full is tried the other way.
  const other = buffer.byteLength + 8 <= maxBytes ? buffer.byteLength + 8 : copy.byteOffset;
  Reflect.apply(resize, buffer, [other]);
  if (other > byteLength) return copy.byteLength > byteLength;
  return copy.byteOffset === other; // one that does not track is out of bounds, at 0
}

export interface Written {
  readonly bytes: Buffer;
  /** The memory of `buffers` that the bytes name, each once. */
  readonly buffers: readonly BufferName[];
}

/** Throws what V8 throws when something in `value` cannot be written. */
export function write(as: Format, value: unknown, buffers: BufferCarrier | undefined): Written {
  const scalars = as === format.slots && Array.isArray(value) ? writeScalars(value) : undefined;
  if (scalars !== undefined) return { bytes: scalars, buffers: noNames };
  const first = new Writer(buffers, noRanges);
  writeAll(first, as, value);
  if (first.split.size === 0) return { bytes: first.releaseBuffer(), buffers: first.names };
  // The first pass found which buffers several views lie on, and which ranges they need.
  const second = new Writer(buffers, first.split);
  writeAll(second, as, value);
  return { bytes: second.releaseBuffer(), buffers: second.names };
}

function writeAll(writer: Writer, as: Format, value: unknown): void {
  writer.writeHeader();
  writer.writeUint32(as);
  writer.writeValue(value);
}

class Reader extends v8.Deserializer {
  readonly #buffers: BufferCarrier | undefined;
  readonly #sizeBytes: number;
  readonly #seen: ArrayBufferLike[] = [];

  constructor(bytes: Uint8Array, buffers: BufferCarrier | undefined) {
    super(bytes);
    this.#buffers = buffers;
    this.#sizeBytes = bytes.byteLength;
  }

  // The name is Node's: the deserializer calls it where `_writeHostObject` wrote.
  _readHostObject(): object {
    const type = this.readUint32();
    const kind = this.readUint32();
    if (kind === memory.bytes) {
      const buffer = this.#copyBytes();
      return makeView(type, buffer, 0, buffer.byteLength);
    }
    const buffer = this.#readBuffer(kind);
    const byteOffset = this.readUint32();
    const byteLength = this.readUint32();
    if (byteLength === tracksLength) return makeView(type, buffer, byteOffset, undefined);
    if (byteOffset + byteLength > buffer.byteLength)
      throw corrupt('a view is larger than its buffer');
    return makeView(type, buffer, byteOffset, byteLength);
  }

  #readBuffer(kind: number): ArrayBufferLike {
    if (kind === memory.shared) {
      const sizeBytes = this.readUint32();
      const maxBytes = this.readDouble();
      const buffer = this.#copyOf(sizeBytes, maxBytes < 0 ? undefined : maxBytes);
      this.#seen.push(buffer);
      return buffer;
    }
    if (kind === memory.seen) {
      const buffer = this.#seen[this.readUint32()];
      if (buffer === undefined) throw corrupt('a view names a buffer that was not sent');
      return buffer;
    }
    if (kind !== memory.named || this.#buffers === undefined)
      throw corrupt('a view of no known kind');
    const count = this.readUint32();
    if (count > 16) throw corrupt('the name of a buffer is too long');
    const name = Array.from({ length: count }, () => this.readDouble());
    const buffer = this.#buffers.find(name);
    this.#seen.push(buffer);
    return buffer;
  }

  #copyBytes(): ArrayBuffer {
    return this.#copyOf(this.readUint32(), undefined);
  }

  /** Fresh memory: the bytes that we read from may be reused as soon as we return. */
  #copyOf(sizeBytes: number, maxBytes: number | undefined): ArrayBuffer {
    if (sizeBytes > this.#sizeBytes) throw corrupt('a buffer is larger than its payload');
    const copy =
      maxBytes === undefined ? new ArrayBuffer(sizeBytes) : resizable(sizeBytes, maxBytes);
    new Uint8Array(copy).set(this.readRawBytes(sizeBytes));
    return copy;
  }
}

function resizable(sizeBytes: number, maxByteLength: number): ArrayBuffer {
  const made: unknown = Reflect.construct(ArrayBuffer, [sizeBytes, { maxByteLength }]);
  if (!(made instanceof ArrayBuffer)) throw corrupt('ArrayBuffer is not a constructor');
  return made;
}

/** `sizeBytes` undefined: it changes its length with its buffer. */
function makeView(
  type: number,
  buffer: ArrayBufferLike,
  byteOffset: number,
  sizeBytes: number | undefined,
) {
  const known = viewTypes[type];
  if (known === undefined) throw corrupt(`no view has the type ${type}`);
  if (type === 0) return Buffer.from(buffer, byteOffset, sizeBytes);
  const { bytesPerElement } = known;
  if ((sizeBytes ?? 0) % bytesPerElement !== 0 || byteOffset % bytesPerElement !== 0) {
    throw corrupt(`a ${known.name} does not fit its bytes`);
  }
  const View: unknown = Reflect.get(globalThis, known.name);
  if (typeof View !== 'function') throw corrupt(`this Node.js has no ${known.name}`);
  const length = sizeBytes === undefined ? [] : [sizeBytes / bytesPerElement];
  const view: unknown = Reflect.construct(View, [buffer, byteOffset, ...length]);
  if (typeof view !== 'object' || view === null)
    throw corrupt(`${known.name} is not a constructor`);
  return view;
}

/** Reads the bytes that `write` made. Throws `TRANSFER_CORRUPT` for anything else. */
export function read(
  bytes: Uint8Array,
  buffers: BufferCarrier | undefined,
): { readonly format: number; readonly value: unknown } {
  if (areScalars(bytes)) return { format: format.slots, value: readScalars(bytes) };
  try {
    const reader = new Reader(bytes, buffers);
    if (!reader.readHeader()) throw corrupt('no header');
    const as = reader.readUint32();
    const value: unknown = reader.readValue();
    adopt(value);
    return { format: as, value };
  } catch (error) {
    throw asCorrupt(error);
  }
}

export function corrupt(what: string, options?: ErrorOptions): CodedError {
  return new CodedError(
    'TRANSFER_CORRUPT',
    `the bytes of a value cannot be read: ${what}; both sides must run the same manycore and Node.js`,
    options,
  );
}

/** Returns an error of ours as it is; any other was caused by the bytes. */
export function asCorrupt(error: unknown): CodedError {
  if (error instanceof CodedError) return error;
  return corrupt(messageOf(error), { cause: error });
}
