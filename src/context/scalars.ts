// Short lists of short primitive values as bytes: the captures of most closures (bench/cases/closure.js). V8's
// serializer takes longer for its set-up alone. What does not fit is left to it.
// Not here: all other values (wire.ts).

import { CodedError } from '../errors.js';

/** First byte; the bytes of V8's serializer begin with 0xff. */
const mark = 1;
const headBytes = 2;
const maxValues = 255;
/** Characters of a text. */
const maxLength = 255;

const tags = {
  undefined: 0,
  null: 1,
  false: 2,
  true: 3,
  /** 4 bytes, as the numbers below little-endian. */
  integer: 4,
  /** 8 bytes. */
  double: 5,
  /** The length in a byte, then a byte for each character. */
  latin1: 6,
  /** The same with two bytes for each. */
  utf16: 7,
} as const;

/** The longest value: its tag, its length, two bytes for each character. */
const maxValueBytes = 2 + 2 * maxLength;
const scratch = Buffer.allocUnsafeSlow(8192);

/** True: `readScalars` is to read them. */
export function areScalars(bytes: Uint8Array): boolean {
  return bytes[0] === mark;
}

/** `undefined`: a value is none of these, or too long. */
export function writeScalars(values: readonly unknown[]): Buffer | undefined {
  if (values.length > maxValues) return undefined;
  scratch[0] = mark;
  scratch[1] = values.length;
  let end = headBytes;
  for (const value of values) {
    if (end + maxValueBytes > scratch.length) return undefined;
    end = writeScalar(value, end);
    if (end === -1) return undefined;
  }
  const bytes = Buffer.allocUnsafeSlow(end);
  scratch.copy(bytes, 0, 0, end);
  return bytes;
}

/** Writes one value at `at`; returns the end of it, or -1. */
function writeScalar(value: unknown, at: number): number {
  switch (typeof value) {
    case 'undefined':
      return scratch.writeUInt8(tags.undefined, at);
    case 'boolean':
      return scratch.writeUInt8(value ? tags.true : tags.false, at);
    case 'number':
      return writeNumber(value, at);
    case 'string':
      return writeText(value, at);
    default:
      return value === null ? scratch.writeUInt8(tags.null, at) : -1;
  }
}

function writeNumber(value: number, at: number): number {
  const isInteger = (value | 0) === value && !Object.is(value, -0);
  scratch[at] = isInteger ? tags.integer : tags.double;
  return isInteger ? scratch.writeInt32LE(value, at + 1) : scratch.writeDoubleLE(value, at + 1);
}

function writeText(text: string, at: number): number {
  const { length } = text;
  if (length > maxLength) return -1;
  scratch[at] = tags.latin1;
  scratch[at + 1] = length;
  for (let index = 0; index < length; index += 1) {
    const code = text.charCodeAt(index);
    if (code > 0xff) return writeWide(text, at);
    scratch[at + 2 + index] = code;
  }
  return at + 2 + length;
}

function writeWide(text: string, at: number): number {
  scratch[at] = tags.utf16;
  return at + 2 + scratch.write(text, at + 2, 'utf16le');
}

/** Reads what `writeScalars` wrote. Throws `TRANSFER_CORRUPT` for anything else. */
export function readScalars(given: Uint8Array): unknown[] {
  const bytes = Buffer.from(given.buffer, given.byteOffset, given.byteLength);
  const values: unknown[] = [];
  let at = headBytes;
  const take = (sizeBytes: number): number => {
    const start = at;
    at += sizeBytes;
    if (at > bytes.length) throw damaged();
    return start;
  };
  const takeText = (encoding: 'latin1' | 'utf16le', bytesEach: number): string => {
    const length = bytes.readUInt8(take(1));
    const start = take(length * bytesEach);
    return bytes.toString(encoding, start, at);
  };
  const count = bytes[1] ?? 0;
  while (values.length < count) {
    switch (bytes[take(1)]) {
      case tags.undefined:
        values.push(undefined);
        break;
      case tags.null:
        values.push(null);
        break;
      case tags.false:
        values.push(false);
        break;
      case tags.true:
        values.push(true);
        break;
      case tags.integer:
        values.push(bytes.readInt32LE(take(4)));
        break;
      case tags.double:
        values.push(bytes.readDoubleLE(take(8)));
        break;
      case tags.latin1:
        values.push(takeText('latin1', 1));
        break;
      case tags.utf16:
        values.push(takeText('utf16le', 2));
        break;
      default:
        throw damaged();
    }
  }
  if (at !== bytes.length) throw damaged();
  return values;
}

function damaged(): CodedError {
  return new CodedError(
    'TRANSFER_CORRUPT',
    'the bytes of captured values cannot be read; both sides must run the same manycore and Node.js',
  );
}
