// Counts of a command without rights in the kernel: a library (crates/preload), loaded into the command and
// all its children, counts their calls into a file with a row for each thread. This module creates and
// reads the file; its layout is described there, with the same numbers.

import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readSync,
  rmSync,
  symlinkSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../lib/index.js';
import { type NativeTracedCall, type NativeTracedRecord, preloadPath } from '../native.js';

/** "MCTC", little-endian. */
const magic = 0x4354_434d;
const headerBytes = 64;
const rows = 2048;
const calls = 512;
/** Limit of the kernel's thread names, with the zero at the end. */
const nameBytes = 16;
const headWords = 2 + nameBytes / 4;
const rowBytes = 4 * (headWords + 2 * calls);
const fileBytes = headerBytes + rows * rowBytes;
const separators = /[ :]/;

export interface PreloadReading {
  /** One for each thread that made a call, in the order of their first calls. */
  readonly records: readonly NativeTracedRecord[];
  /** Threads and programs without a row. */
  readonly lost: number;
  /** Reason for missing counts. */
  readonly problem?: string;
}

export class PreloadCounts {
  /** Environment variables for the command. */
  readonly env: Readonly<Record<string, string>>;
  readonly #folder: string;
  readonly #file: string;

  private constructor(folder: string, file: string, library: string) {
    this.#folder = folder;
    this.#file = file;
    const others = process.env['LD_PRELOAD'] ?? '';
    const libraries = [library, ...(others === '' ? [] : [others])];
    this.env = { LD_PRELOAD: libraries.join(':'), MANYCORE_TRACE_COUNTS: file };
  }

  /** Returns the reason when the library is missing, or the file has no room. */
  static create(library = preloadPath()): PreloadCounts | string {
    if (!existsSync(library)) return `${library} is missing; npm run build:native makes it`;
    let folder: string | undefined;
    try {
      folder = mkdtempSync(join(tmpdir(), 'manycore-counts-'));
      const file = join(folder, 'counts');
      makeFile(file);
      return new PreloadCounts(folder, file, listable(library, folder));
    } catch (error) {
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
      return `${messageOf(error)}; name a folder with 9 MB of room in TMPDIR`;
    }
  }

  read(): PreloadReading {
    try {
      return this.#read();
    } catch (error) {
      return { records: [], lost: 0, problem: messageOf(error) };
    }
  }

  #read(): PreloadReading {
    const fd = openSync(this.#file, 'r');
    try {
      const claimed = bytesAt(fd, 0, headerBytes).readUInt32LE(4);
      // The traced program may write there: the number is bounded before it is used as an index.
      const count = Math.min(claimed, rows);
      const bytes = bytesAt(fd, headerBytes, count * rowBytes);
      const records = Array.from({ length: count }, (_, at) => recordAt(bytes, at * rowBytes));
      return { records, lost: claimed - count };
    } finally {
      closeSync(fd);
    }
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/**
 * Returns a path of `library` for `LD_PRELOAD`, whose entries are separated by spaces and colons: where the
 * path has one, a link in `folder`. Throws where that has one as well.
 */
function listable(library: string, folder: string): string {
  if (!separators.test(library)) return library;
  if (separators.test(folder)) throw new Error(`${folder} has a space or a colon`);
  const link = join(folder, 'manycore-preload.so');
  symlinkSync(library, link);
  return link;
}

/** Writes all bytes: counting into a hole on a full disk would end the program by SIGBUS. */
function makeFile(file: string): void {
  const bytes = Buffer.alloc(fileBytes);
  bytes.writeUInt32LE(magic, 0);
  const fd = openSync(file, 'wx', 0o600);
  try {
    for (let at = 0; at < fileBytes; ) at += writeSync(fd, bytes, at);
  } finally {
    closeSync(fd);
  }
}

/** Returns zeros behind the end of the file. */
function bytesAt(fd: number, start: number, size: number): Buffer {
  const bytes = Buffer.alloc(size);
  readSync(fd, bytes, 0, size, start);
  return bytes;
}

function recordAt(bytes: Buffer, start: number): NativeTracedRecord {
  const word = (at: number): number => bytes.readUInt32LE(start + 4 * at);
  const found: NativeTracedCall[] = [];
  for (let number = 0; number < calls; number += 1) {
    const [count, errors] = [word(headWords + 2 * number), word(headWords + 2 * number + 1)];
    if (count > 0) found.push({ number, count, errors, tookNs: 0, blockedNs: 0 });
  }
  return {
    pid: word(0),
    tid: word(1),
    isEnded: false,
    isStarting: false,
    tasks: 1,
    runNs: 0,
    name: bytes.toString('utf8', start + 8, start + 8 + nameBytes).replace(/\0.*$/s, ''),
    calls: found,
  };
}
