// The byte format of values and definitions: V8's own serializer, with a number in front that says how
// to read what follows. Array buffer views are written by us, so that memory that has a name in every
// process travels as that name, and views of one buffer stay views of one buffer.
// Bytes come from another process: every way that they can be wrong ends in TRANSFER_CORRUPT.
// Not here: what a graph means (encode.ts, decode.ts).

import { isSharedArrayBuffer } from 'node:util/types';
import v8 from 'node:v8';
import { CodedError } from '../errors.js';
import type { BufferCarrier, BufferName } from './types.js';

/** What follows the header. */
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

/** How the memory of a view is written. */
const memory = { bytes: 0, wholeBuffer: 1, seen: 2, named: 3 } as const;

const typedArrayTag = Object.getOwnPropertyDescriptor(
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

class Writer extends v8.Serializer {
  readonly #buffers: BufferCarrier | undefined;
  #names: BufferName[] | undefined;
  #seen: Map<ArrayBufferLike, number> | undefined;

  constructor(buffers: BufferCarrier | undefined) {
    super();
    this.#buffers = buffers;
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
    const { buffer, byteOffset, byteLength } = view;
    this.writeUint32(type);
    const seen = this.#seen?.get(buffer);
    if (seen !== undefined) {
      this.writeUint32(memory.seen);
      this.writeUint32(seen);
      this.#writeRange(byteOffset, byteLength);
      return;
    }
    const name = this.#buffers?.name(buffer);
    if (name !== undefined) {
      this.#writeName(name);
      this.#remember(buffer);
      this.#writeRange(byteOffset, byteLength);
      return;
    }
    if (isSharedArrayBuffer(buffer)) throw new TypeError('shared memory cannot be cloned');
    if (keepsWholeBuffer(view, type)) {
      this.#remember(buffer);
      this.writeUint32(memory.wholeBuffer);
      this.writeUint32(buffer.byteLength);
      this.writeRawBytes(new Uint8Array(buffer));
      this.#writeRange(byteOffset, byteLength);
    } else {
      this.writeUint32(memory.bytes);
      this.writeUint32(byteLength);
      this.writeRawBytes(new Uint8Array(buffer, byteOffset, byteLength));
    }
  }

  #writeName(name: BufferName): void {
    this.#names ??= [];
    this.#names.push(name);
    this.writeUint32(memory.named);
    this.writeUint32(name.length);
    for (const part of name) this.writeDouble(part);
  }

  #remember(buffer: ArrayBufferLike): void {
    this.#seen ??= new Map();
    this.#seen.set(buffer, this.#seen.size);
  }

  #writeRange(byteOffset: number, byteLength: number): void {
    this.writeUint32(byteOffset);
    this.writeUint32(byteLength);
  }
}

/**
 * Whether the buffer around a view goes along, so that other views of it meet there again. Not for
 * `Buffer`s (they share Node's pool), and not when a view shows a small part of much memory.
 */
function keepsWholeBuffer(view: ArrayBufferView, type: number): boolean {
  return type !== 0 && view.buffer.byteLength <= 2 * view.byteLength;
}

export interface Written {
  readonly bytes: Buffer;
  /** What of `buffers` the bytes name, each once. */
  readonly buffers: readonly BufferName[];
}

/** Throws what V8 throws when something in `value` cannot be written. */
export function write(as: Format, value: unknown, buffers: BufferCarrier | undefined): Written {
  const writer = new Writer(buffers);
  writer.writeHeader();
  writer.writeUint32(as);
  writer.writeValue(value);
  return { bytes: writer.releaseBuffer(), buffers: writer.names };
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
    if (byteOffset + byteLength > buffer.byteLength)
      throw corrupt('a view is larger than its buffer');
    return makeView(type, buffer, byteOffset, byteLength);
  }

  #readBuffer(kind: number): ArrayBufferLike {
    if (kind === memory.wholeBuffer) {
      const buffer = this.#copyBytes();
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

  /** Fresh memory: the bytes that we read from may be reused as soon as we return. */
  #copyBytes(): ArrayBuffer {
    const sizeBytes = this.readUint32();
    if (sizeBytes > this.#sizeBytes) throw corrupt('a buffer is larger than what holds it');
    const copy = new ArrayBuffer(sizeBytes);
    new Uint8Array(copy).set(this.readRawBytes(sizeBytes));
    return copy;
  }
}

function makeView(type: number, buffer: ArrayBufferLike, byteOffset: number, sizeBytes: number) {
  const known = viewTypes[type];
  if (known === undefined) throw corrupt(`no view has the type ${type}`);
  if (type === 0) return Buffer.from(buffer, byteOffset, sizeBytes);
  if (type === 1) return new DataView(buffer, byteOffset, sizeBytes);
  if (sizeBytes % known.bytesPerElement !== 0 || byteOffset % known.bytesPerElement !== 0) {
    throw corrupt(`a ${known.name} does not fit its bytes`);
  }
  const View: unknown = Reflect.get(globalThis, known.name);
  if (typeof View !== 'function') throw corrupt(`this Node.js has no ${known.name}`);
  const view: unknown = Reflect.construct(View, [
    buffer,
    byteOffset,
    sizeBytes / known.bytesPerElement,
  ]);
  if (typeof view !== 'object' || view === null)
    throw corrupt(`${known.name} is not a constructor`);
  return view;
}

/** What `write` wrote. Throws `TRANSFER_CORRUPT` for anything else. */
export function read(
  bytes: Uint8Array,
  buffers: BufferCarrier | undefined,
): { readonly format: number; readonly value: unknown } {
  try {
    const reader = new Reader(bytes, buffers);
    if (!reader.readHeader()) throw corrupt('no header');
    const as = reader.readUint32();
    const value: unknown = reader.readValue();
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

/** Keeps an error of ours; any other was caused by the bytes. */
export function asCorrupt(error: unknown): CodedError {
  if (error instanceof CodedError) return error;
  return corrupt(error instanceof Error ? error.message : String(error), { cause: error });
}
