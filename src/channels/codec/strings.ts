// Strings in a frame: one byte per character when all are below 256, else two. Short ones are copied
// by a loop, because a call into C++ costs more than 30 characters do (bench/cases/throughput).

import type { ByteReader, ByteWriter } from '../bytes.js';
import { KEY_LATIN, KEY_WIDE, TAG_STRING_LATIN, TAG_STRING_SHORT, TAG_STRING_WIDE } from './tags.js';

/** Up to here the loop wins over `Buffer.write`, in characters. */
const loopLimit = 48;
const wideCharacter = /[^\0-\xff]/;

/** Whether every UTF-16 unit is below 256. */
function isLatin(text: string): boolean {
  // Size in UTF-8 equals length for ASCII alone; it is vectorised, the pattern is not.
  return Buffer.byteLength(text) === text.length || !wideCharacter.test(text);
}

function writeLong(writer: ByteWriter, text: string, latinTag: number, wideTag: number): void {
  const latin = isLatin(text);
  const sizeBytes = latin ? text.length : text.length * 2;
  if (!writer.hasRoom(5 + sizeBytes)) return;
  const start = writer.position;
  writer.bytes[start] = latin ? latinTag : wideTag;
  writer.view.setUint32(start + 1, sizeBytes, true);
  writer.bytes.write(text, start + 5, sizeBytes, latin ? 'latin1' : 'utf16le');
  writer.position = start + 5 + sizeBytes;
}

/** Writes a string value with its tag. */
export function writeString(writer: ByteWriter, text: string): void {
  const count = text.length;
  if (count > loopLimit) {
    writeLong(writer, text, TAG_STRING_LATIN, TAG_STRING_WIDE);
    return;
  }
  if (!writer.hasRoom(2 + count)) return;
  const bytes = writer.bytes;
  const start = writer.position;
  bytes[start] = TAG_STRING_SHORT;
  bytes[start + 1] = count;
  for (let index = 0; index < count; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit > 255) {
      writeLong(writer, text, TAG_STRING_LATIN, TAG_STRING_WIDE);
      return;
    }
    bytes[start + 2 + index] = unit;
  }
  writer.position = start + 2 + count;
}

/** Writes a key of an object. */
export function writeKey(writer: ByteWriter, text: string): void {
  const count = text.length;
  if (count > loopLimit) {
    writeLong(writer, text, KEY_LATIN, KEY_WIDE);
    return;
  }
  if (!writer.hasRoom(1 + count)) return;
  const bytes = writer.bytes;
  const start = writer.position;
  bytes[start] = count;
  for (let index = 0; index < count; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit > 255) {
      writeLong(writer, text, KEY_LATIN, KEY_WIDE);
      return;
    }
    bytes[start + 1 + index] = unit;
  }
  writer.position = start + 1 + count;
}

/** Reads `count` one-byte characters. */
export function readLatin(reader: ByteReader, count: number): string {
  const start = reader.take(count);
  return reader.bytes.toString('latin1', start, start + count);
}

/** Reads two-byte characters, `sizeBytes` in all. */
export function readWide(reader: ByteReader, sizeBytes: number): string {
  const start = reader.take(sizeBytes);
  return reader.bytes.toString('utf16le', start, start + sizeBytes);
}

/** Reads a key of an object. */
export function readKey(reader: ByteReader): string {
  const first = reader.u8();
  if (first < KEY_LATIN) return readLatin(reader, first);
  const size = reader.u32();
  return first === KEY_LATIN ? readLatin(reader, size) : readWide(reader, size);
}
