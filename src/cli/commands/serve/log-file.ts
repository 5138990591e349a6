// A log file: appended to, rotated by size, and opened again where it was moved or removed (logrotate), at the latest a
// second later. During an upgrade two processes append to it, and either may rotate it. What cannot be written is lost
// and counted; the server goes on.

import {
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  renameSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs';
import { messageOf } from '../../../lib/index.js';

export interface LogFileOptions {
  /** Size at which it is rotated; Infinity: never. */
  readonly maxBytes: number;
  /** Number of old files, FILE.1 the youngest. */
  readonly keep: number;
  /** Called when lines begin to be lost, and when they are written again. */
  readonly onProblem: (message: string) => void;
}

/** Interval in which the path is checked, in ms. */
const checkMs = 1000;

export class LogFile {
  readonly path: string;
  readonly #options: LogFileOptions;
  #fd: number;
  #bytes = 0;
  #checkedAtMs = 0;
  #lostLines = 0;

  /** Throws what the system says of a file that cannot be opened. */
  constructor(path: string, options: LogFileOptions) {
    this.path = path;
    this.#options = options;
    this.#fd = openSync(path, 'a');
    this.#opened();
  }

  #opened(): void {
    this.#bytes = fstatSync(this.#fd).size;
    this.#checkedAtMs = performance.now();
  }

  /** Throws as `open`; the old file then stays. */
  #openAnew(): void {
    const fd = openSync(this.path, 'a');
    closeSync(this.#fd);
    this.#fd = fd;
    this.#opened();
  }

  /** Appends lines, with their ends. */
  write(text: string): void {
    const bytes = Buffer.from(text);
    try {
      if (performance.now() - this.#checkedAtMs > checkMs) this.#check();
      if (this.#isTooLong(bytes)) {
        this.#check(); // another process may have rotated it
        if (this.#isTooLong(bytes)) this.#rotate();
      }
      this.#append(bytes);
    } catch (error) {
      this.#lost(text, error);
      return;
    }
    if (this.#lostLines > 0) {
      const count = this.#lostLines;
      this.#lostLines = 0;
      const lines = count === 1 ? '1 line was' : `${count} lines were`;
      this.#options.onProblem(`the log ${this.path} is written again; ${lines} lost`);
    }
  }

  #isTooLong({ length }: Buffer): boolean {
    return this.#bytes > 0 && this.#bytes + length > this.#options.maxBytes;
  }

  #append(bytes: Buffer): void {
    let written = 0;
    while (written < bytes.length) written += writeSync(this.#fd, bytes, written);
    this.#bytes += written;
  }

  #lost(text: string, error: unknown): void {
    if (this.#lostLines === 0) {
      const message = `the log ${this.path} cannot be written: ${messageOf(error)}; lines are lost`;
      this.#options.onProblem(message);
    }
    this.#lostLines += text.split('\n').length - 1;
    this.#checkedAtMs = -Infinity; // the next line tries it anew
  }

  /** Opens the path again: the file that was open may have been moved. */
  reopen(): void {
    try {
      this.#openAnew();
    } catch (error) {
      this.#options.onProblem(
        `the log ${this.path} cannot be opened again: ${messageOf(error)}; the old file is kept`,
      );
    }
  }

  close(): void {
    closeSync(this.#fd);
  }

  /** Throws as `open`. */
  #check(): void {
    const now = statOf(this.path);
    const { ino, dev, size } = fstatSync(this.#fd);
    this.#checkedAtMs = performance.now();
    this.#bytes = size; // others append as well
    if (now?.ino === ino && now.dev === dev) return;
    this.#openAnew();
  }

  /** Throws as `rename` and `open`. */
  #rotate(): void {
    const { keep } = this.#options;
    for (let number = keep; number > 1; number -= 1) {
      const younger = `${this.path}.${number - 1}`;
      if (existsSync(younger)) renameSync(younger, `${this.path}.${number}`);
    }
    renameSync(this.path, `${this.path}.1`);
    this.#openAnew();
  }
}

function statOf(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}
