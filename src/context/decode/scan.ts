// Checks bytes of V8's serializer before V8 reads them, for a peer that is not trusted. V8 itself has no limits: three
// bytes make a Map of two hundred, and some ten thousand resizable buffers, of six bytes each, end the process. So each
// token is stepped over here: kinds that an honest peer never writes are refused, the memory of the others is estimated.
// Not here: the order of the tokens, which V8 checks.

import v8 from 'node:v8';
import { jsonOf, memoryLimit } from '../../lib/index.js';
import { corrupt, memory } from '../wire.js';

/** Estimates for 64 bits. */
const collectionBytes = 220;
const viewBytes = 320;
const objectBytes = 64;
const elementBytes = 8;
const doubleBytes = 8;
const maxVarintBytes = 5;

/** The tags are those of this version of Node, which a partition has, too. */
const headerMark = 0xff;
const version = v8.serialize(null)[1];

/** Throws `TRANSFER_CORRUPT` for bytes that V8 must not read. */
export function scan(bytes: Uint8Array): void {
  if (bytes[0] !== headerMark || bytes[1] !== version) throw corrupt('another version of V8');
  const scanner = new Scanner(bytes, 2);
  scanner.varint(); // the format
  while (!scanner.isAtEnd) scanner.token();
}

class Scanner {
  readonly #bytes: Uint8Array;
  #position: number;
  #freeBytes: number;

  constructor(bytes: Uint8Array, position: number) {
    this.#bytes = bytes;
    this.#position = position;
    this.#freeBytes = memoryLimit(bytes.byteLength);
  }

  get isAtEnd(): boolean {
    return this.#position >= this.#bytes.byteLength;
  }

  token(): void {
    const tag = String.fromCharCode(this.#byte());
    switch (tag) {
      case '\0':
      case '-':
      case '_':
      case '0':
      case 'T':
      case 'F':
        break;
      case 'I':
      case 'U':
      case '^':
      case '{':
      case ':':
      case ',':
        this.varint();
        break;
      case '$':
      case '@':
        this.varint();
        this.varint();
        break;
      case 'N':
        this.#skip(doubleBytes);
        break;
      case 'Z':
        this.#bigint();
        break;
      case 'S':
      case '"':
      case 'c':
        this.#skip(this.varint());
        break;
      case 'o':
      case 'x':
      case 'y':
      case 's':
        this.#take(objectBytes);
        break;
      case 'a':
        this.#take(objectBytes);
        this.varint();
        break;
      case 'A':
        this.#take(objectBytes + this.varint() * elementBytes);
        break;
      case 'D':
      case 'n':
        this.#take(objectBytes);
        this.#skip(doubleBytes);
        break;
      case 'z':
        this.#take(objectBytes);
        this.#bigint();
        break;
      case ';':
      case "'":
        this.#take(collectionBytes);
        break;
      case 'R':
        this.#regExp();
        break;
      case '\\':
        this.#view();
        break;
      default: // V8's own buffers and views, its errors, shared memory, WebAssembly
        throw corrupt(`no value begins with ${jsonOf(tag)}`);
    }
  }

  varint(): number {
    let value = 0;
    for (let at = 0; at < maxVarintBytes; at += 1) {
      const byte = this.#byte();
      value |= (byte & 0x7f) << (7 * at);
      if (byte < 0x80) return value >>> 0;
    }
    throw corrupt('a number is too long');
  }

  #byte(): number {
    const byte = this.#bytes[this.#position];
    if (byte === undefined) throw corrupt('they end too early');
    this.#position += 1;
    return byte;
  }

  #skip(sizeBytes: number): void {
    this.#position += sizeBytes;
    if (this.#position > this.#bytes.byteLength) throw corrupt('they end too early');
  }

  #take(sizeBytes: number): void {
    this.#freeBytes -= sizeBytes;
    if (this.#freeBytes < 0) throw corrupt('it has too many parts for its size');
  }

  /** A sign in the lowest bit, then the number of bytes. */
  #bigint(): void {
    this.#skip((this.varint() >>> 1) & 0x3fff_ffff);
  }

  /** The pattern with its tag, then the flags without one. */
  #regExp(): void {
    this.#take(collectionBytes);
    let tag = this.#byte();
    while (tag === 0) tag = this.#byte();
    if (!'S"c'.includes(String.fromCharCode(tag))) throw corrupt('a pattern is no text');
    this.#skip(this.varint());
    this.varint();
  }

  /** Steps over a view, in the form of `Writer` in wire.ts. */
  #view(): void {
    this.#take(viewBytes);
    this.varint();
    const kind = this.varint();
    if (kind === memory.bytes) {
      this.#skip(this.varint());
      return;
    }
    if (kind === memory.shared) this.#shared();
    else if (kind === memory.seen) this.varint();
    else throw corrupt('a view of no known kind');
    this.varint();
    this.varint();
  }

  /** A buffer that can grow reserves what it may need, and a process has a limited number of such pieces. */
  #shared(): void {
    const sizeBytes = this.varint();
    const start = this.#position;
    this.#skip(doubleBytes);
    const { buffer, byteOffset } = this.#bytes;
    const maxBytes = new DataView(buffer, byteOffset + start, doubleBytes).getFloat64(0, true);
    if (maxBytes !== -1) throw corrupt('a buffer can change its size');
    this.#skip(sizeBytes);
  }
}
