// The kinds of byte views that travel, by number: the writer names one and the reader makes it. Subclasses
// (but Buffer) and views of other realms have another prototype: they go by the slow codec.

import { CodedError } from '../../errors.js';

interface ViewKind {
  readonly prototype: object;
  /** A view's offset in its buffer and its size are multiples of this. */
  readonly elementBytes: number;
  make(buffer: ArrayBuffer, offset: number, sizeBytes: number): ArrayBufferView | ArrayBuffer;
}

interface ElementArrayConstructor {
  readonly prototype: object;
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBuffer, offset: number, length: number): ArrayBufferView;
}

function elementArray(constructor: ElementArrayConstructor): ViewKind {
  const elementBytes = constructor.BYTES_PER_ELEMENT;
  return {
    prototype: constructor.prototype,
    elementBytes,
    make: (buffer, offset, sizeBytes) => new constructor(buffer, offset, sizeBytes / elementBytes),
  };
}

const bufferKind: ViewKind = {
  prototype: Buffer.prototype,
  elementBytes: 1,
  make: (buffer, offset, sizeBytes) => Buffer.from(buffer, offset, sizeBytes),
};

const arrayBufferKind: ViewKind = {
  prototype: ArrayBuffer.prototype,
  elementBytes: 1,
  make: (buffer, offset, sizeBytes) =>
    offset === 0 && sizeBytes === buffer.byteLength
      ? buffer
      : buffer.slice(offset, offset + sizeBytes),
};

const dataViewKind: ViewKind = {
  prototype: DataView.prototype,
  elementBytes: 1,
  make: (buffer, offset, sizeBytes) => new DataView(buffer, offset, sizeBytes),
};

/** Only Node 24 and later have it; both ends run the same binary. */
function float16Kinds(): ViewKind[] {
  const constructor: unknown = Reflect.get(globalThis, 'Float16Array');
  if (typeof constructor !== 'function' || typeof constructor.prototype !== 'object') return [];
  const make = constructor;
  return [
    {
      prototype: constructor.prototype,
      elementBytes: 2,
      make: (buffer, offset, sizeBytes) => Reflect.construct(make, [buffer, offset, sizeBytes / 2]),
    },
  ];
}

/** The index is the number in a frame. */
const kinds: readonly ViewKind[] = [
  bufferKind,
  elementArray(Uint8Array),
  arrayBufferKind,
  dataViewKind,
  elementArray(Int8Array),
  elementArray(Uint8ClampedArray),
  elementArray(Int16Array),
  elementArray(Uint16Array),
  elementArray(Int32Array),
  elementArray(Uint32Array),
  elementArray(Float32Array),
  elementArray(Float64Array),
  elementArray(BigInt64Array),
  elementArray(BigUint64Array),
  ...float16Kinds(),
];

export const VIEW_BUFFER = 0;
export const VIEW_ARRAY_BUFFER = 2;

const kindByPrototype = new Map<object, number>(
  kinds.map((kind, index): [object, number] => [kind.prototype, index]),
);

/** Returns the number of the kind with this prototype; `undefined`: none of these. */
export function viewKindOf(prototype: object): number | undefined {
  return kindByPrototype.get(prototype);
}

/** Makes a view of this kind over bytes of `buffer`. The numbers are input: throws CHANNEL_FRAME_CORRUPT. */
export function makeView(
  kindNumber: number,
  buffer: ArrayBuffer,
  offset: number,
  sizeBytes: number,
): ArrayBufferView | ArrayBuffer {
  const kind = kinds[kindNumber];
  if (
    kind === undefined ||
    !(offset >= 0 && sizeBytes >= 0 && offset + sizeBytes <= buffer.byteLength) ||
    offset % kind.elementBytes !== 0 ||
    sizeBytes % kind.elementBytes !== 0
  ) {
    throw new CodedError(
      'CHANNEL_FRAME_CORRUPT',
      `no view of kind ${kindNumber} has ${sizeBytes} bytes at ${offset} of ${buffer.byteLength}`,
    );
  }
  return kind.make(buffer, offset, sizeBytes);
}
