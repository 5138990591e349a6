// Lines of a process's output, each with its loop. The main thread of a process marks the lines of its loops'
// threads; what comes without a mark (its own lines, native code) belongs to no loop, unless it has only one.

import { StringDecoder } from 'node:string_decoder';

/** A line that a program has printed. */
export interface OutputLine {
  /** When it arrived, in ms since 1970. */
  readonly timeMs: number;
  /** Name of the app. */
  readonly name: string;
  /** Number of the process. */
  readonly process: number;
  /** Index of the loop in its process; `undefined` where it is unknown. */
  readonly loop: number | undefined;
  readonly stream: 'stdout' | 'stderr';
  /** Without its end of line. */
  readonly text: string;
}

/** A longer line is several. In characters. */
export const maxLineLength = 64 * 1024;

/** Cuts text into lines. */
export class LineSplitter {
  readonly #decoder = new StringDecoder('utf8');
  readonly #onLine: (line: string) => void;
  readonly #maxLength: number;
  #rest = '';

  constructor(onLine: (line: string) => void, maxLength = maxLineLength) {
    this.#onLine = onLine;
    this.#maxLength = maxLength;
  }

  write(bytes: Buffer): void {
    const lines = (this.#rest + this.#decoder.write(bytes)).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#cut(line);
    while (this.#rest.length > this.#maxLength) {
      this.#onLine(this.#rest.slice(0, this.#maxLength));
      this.#rest = this.#rest.slice(this.#maxLength);
    }
  }

  /** The last line may have no end. */
  end(): void {
    const rest = this.#rest + this.#decoder.end();
    this.#rest = '';
    if (rest !== '') this.#cut(rest);
  }

  #cut(line: string): void {
    let text = line.endsWith('\r') ? line.slice(0, -1) : line;
    while (text.length > this.#maxLength) {
      this.#onLine(text.slice(0, this.#maxLength));
      text = text.slice(this.#maxLength);
    }
    this.#onLine(text);
  }
}

/** Characters that no text has: record separator, unit separator. */
const [markStart, markEnd] = ['\x1e', '\x1f'];
const mark = new RegExp(`^${markStart}(\\d{1,3})${markEnd}`);

/** Length of a mark, at most. */
export const maxMarkLength = 5;

/** A line of the thread of a loop, as its process passes it on. */
export function markedLine(loop: number, text: string): string {
  return `${markStart}${loop}${markEnd}${text}\n`;
}

/** Takes a line apart. */
export function readMark(line: string): {
  readonly loop: number | undefined;
  readonly text: string;
} {
  const [whole = '', loop] = mark.exec(line) ?? [];
  return { loop: loop === undefined ? undefined : Number(loop), text: line.slice(whole.length) };
}
