// Strings in a frame: one byte per character when all are below 256, else two. Short ones are copied
// by a loop, because a call into C++ costs more than 30 characters do (bench/cases/throughput).

import { constants } from 'node:buffer';
import { CodedError } from '../../errors.js';
import type { ByteReader, ByteWriter } from '../bytes.js';
import {
  KEY_LATIN,
  KEY_WIDE,
  TAG_STRING_LATIN,
  TAG_STRING_SHORT,
  TAG_STRING_WIDE,
} from './tags.js';

/** Up to here the loop beats `Buffer.write`, in characters. */
const loopLimit = 20;
/** Up to here `String.fromCharCode` beats `latin1Slice`, in characters. */
const fromCodesLimit = 12;
/** Size of the widest character in UTF-8, in bytes. */
const widestBytes = 4;
const wideCharacter = /[^\0-\xff]/;

/** Writes tag, size and characters; the caller has found that a short form does not do. */
function writeLong(writer: ByteWriter, text: string, latinTag: number, wideTag: number): void {
  const count = text.length;
  if (!writer.hasRoom(5 + count + widestBytes)) return;
  const start = writer.position;
  // ASCII, and only ASCII, takes as many bytes in UTF-8 as it has characters; with room for one
  // character more, any other text would go on past `count`.
  if (writer.bytes.utf8Write(text, start + 5, count + widestBytes) === count) {
    writer.bytes[start] = latinTag;
    writer.view.setUint32(start + 1, count, true);
    writer.position = start + 5 + count;
    return;
  }
  const isWide = wideCharacter.test(text);
  const sizeBytes = isWide ? count * 2 : count;
  if (!writer.hasRoom(5 + sizeBytes)) return;
  writer.bytes[start] = isWide ? wideTag : latinTag;
  writer.view.setUint32(start + 1, sizeBytes, true);
  writer.bytes.write(text, start + 5, sizeBytes, isWide ? 'utf16le' : 'latin1');
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
  if (count <= fromCodesLimit) return fromCodes(reader.view, start, count);
  checkLength(count);
  return reader.bytes.latin1Slice(start, start + count);
}

/** Reads two-byte characters, `sizeBytes` in all. */
export function readWide(reader: ByteReader, sizeBytes: number): string {
  const start = reader.take(sizeBytes);
  checkLength(sizeBytes / 2);
  return reader.bytes.ucs2Slice(start, start + sizeBytes);
}

/** Throws for more characters than a string may have, or half a one: the size was forged. */
function checkLength(count: number): void {
  if (Number.isInteger(count) && count <= constants.MAX_STRING_LENGTH) return;
  throw new CodedError('CHANNEL_FRAME_CORRUPT', `no string has ${count} characters`);
}

/** Reads up to `fromCodesLimit` characters. One call with all codes: joining parts costs as much again. */
function fromCodes(view: DataView, at: number, count: number): string {
  const code = String.fromCharCode;
  if (count >= 8) return longerFromCodes(view, at, count);
  const a = count > 0 ? view.getUint8(at) : 0;
  const b = count > 1 ? view.getUint8(at + 1) : 0;
  const c = count > 2 ? view.getUint8(at + 2) : 0;
  const d = count > 3 ? view.getUint8(at + 3) : 0;
  const e = count > 4 ? view.getUint8(at + 4) : 0;
  switch (count) {
    case 0:
      return '';
    case 1:
      return code(a);
    case 2:
      return code(a, b);
    case 3:
      return code(a, b, c);
    case 4:
      return code(a, b, c, d);
    case 5:
      return code(a, b, c, d, e);
    case 6:
      return code(a, b, c, d, e, view.getUint8(at + 5));
    default:
      return code(a, b, c, d, e, view.getUint8(at + 5), view.getUint8(at + 6));
  }
}

function longerFromCodes(view: DataView, at: number, count: number): string {
  const head = String.fromCharCode(
    view.getUint8(at),
    view.getUint8(at + 1),
    view.getUint8(at + 2),
    view.getUint8(at + 3),
    view.getUint8(at + 4),
    view.getUint8(at + 5),
    view.getUint8(at + 6),
    view.getUint8(at + 7),
  );
  return count === 8 ? head : head + fromCodes(view, at + 8, count - 8);
}

/** Reads a key of an object. */
export function readKey(reader: ByteReader): string {
  const first = reader.u8();
  if (first < KEY_LATIN) return readLatin(reader, first);
  const size = reader.u32();
  return first === KEY_LATIN ? readLatin(reader, size) : readWide(reader, size);
}
