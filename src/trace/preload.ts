// Counts of a command that the kernel may not be asked about: a library (crates/preload) that is loaded
// into the command and all that it starts counts their calls into a file, a row for each thread. Here
// the file is made and read; its layout is stated there, with the same numbers.

import { closeSync, existsSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../internal/index.js';
import { type NativeTracedCall, type NativeTracedRecord, preloadPath } from '../native.js';

/** "MCTC", little-endian. */
const magic = 0x4354_434d;
const headerBytes = 64;
const rows = 2048;
const calls = 512;
/** As long as the kernel lets names be, with the zero at the end. */
const nameBytes = 16;
const headWords = 2 + nameBytes / 4;
const rowBytes = 4 * (headWords + 2 * calls);
const fileBytes = headerBytes + rows * rowBytes;

export interface PreloadReading {
  /** One for each thread that made a call, in the order of their first calls. */
  readonly records: readonly NativeTracedRecord[];
  /** Threads and programs that found no row. */
  readonly lost: number;
  /** Why there is nothing. */
  readonly problem?: string;
}

export class PreloadCounts {
  /** What the command is to have in its environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly #folder: string;
  readonly #file: string;

  private constructor(folder: string, file: string) {
    this.#folder = folder;
    this.#file = file;
    const others = process.env['LD_PRELOAD'] ?? '';
    const libraries = [preloadPath(), ...(others === '' ? [] : [others])];
    this.env = { LD_PRELOAD: libraries.join(':'), MANYCORE_TRACE_COUNTS: file };
  }

  /** The reason, where there is no such library, or no place for the file. */
  static create(): PreloadCounts | string {
    const library = preloadPath();
    if (!existsSync(library)) return `${library} is missing; npm run build:native makes it`;
    // Libraries are separated by spaces and colons: a path with one of them cannot be named.
    if (/[ :]/.test(library)) return `${library} has a space or a colon; move the package`;
    let folder: string | undefined;
    try {
      folder = mkdtempSync(join(tmpdir(), 'manycore-counts-'));
      const file = join(folder, 'counts');
      makeFile(file);
      return new PreloadCounts(folder, file);
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
      // The traced program may write there: a number of it is no index before it is bounded.
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

/** Written whole, because a program ends by SIGBUS when it counts into a hole and the disk is full. */
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

/** What the file lacks there is zero. */
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
