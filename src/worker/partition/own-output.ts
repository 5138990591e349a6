// Passes the output of a sandbox on to that of this process, as a trusted worker writes there itself. A terminal obeys
// control characters, so none gets through.

import type { OutputListener } from '../parent/output.js';

/** All but tabs and ends of lines: a terminal obeys other control characters. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it finds
const controls = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

/** Returns `text` without characters that a terminal would obey. */
export function printable(text: string): string {
  return text.replace(controls, '\ufffd');
}

export const passOn: OutputListener = (text, { stream }) => passOutput(text, stream);

export function passOutput(text: string, stream: 'stdout' | 'stderr'): void {
  const to = stream === 'stdout' ? process.stdout : process.stderr;
  to.write(printable(text));
}

/** The line of a kernel that ends itself; a stack and other numbers follow it. */
const panic = /Kernel panic - .*/;
/** The line of V8 without room for another object; a stack follows it, and an abort. */
const fullHeap = /^FATAL ERROR: .*out of memory/;
/** A line that is longer is read without its middle. */
const maxLineChars = 1000;

/** Keeps the line on stderr that is likely to name the cause of an end: a panic, else the last. */
export class CauseLine {
  /** The line that has not ended yet: output comes in parts that are cut anywhere. */
  #open = '';
  #panic: string | undefined;
  #last = '';
  #isHeapFull = false;

  add(text: string): void {
    const [first = '', ...more] = text.split('\n');
    const lines = [this.#open + first, ...more];
    const open = lines.pop() ?? '';
    this.#open =
      open.length > maxLineChars
        ? open.slice(0, maxLineChars / 2) + open.slice(-maxLineChars / 2)
        : open;
    this.#panic ??= panicIn(lines);
    this.#last = lastOf(lines) ?? this.#last;
    this.#isHeapFull ||= lines.some((line) => fullHeap.test(line));
  }

  /** Without characters that a terminal would obey. */
  get text(): string {
    const open = [this.#open];
    return printable(this.#panic ?? panicIn(open) ?? lastOf(open) ?? this.#last);
  }

  get hasPanicked(): boolean {
    return (this.#panic ?? panicIn([this.#open])) !== undefined;
  }

  /** True: V8 has written that its heap is full. Code can write the same line, about its own end alone. */
  get isHeapFull(): boolean {
    return this.#isHeapFull || fullHeap.test(this.#open);
  }
}

function panicIn(lines: readonly string[]): string | undefined {
  const line = lines.find((each) => panic.test(each));
  return line === undefined ? undefined : panic.exec(line)?.[0];
}

/** The last line that is not empty. */
function lastOf(lines: readonly string[]): string | undefined {
  return lines.findLast((line) => line.trim() !== '');
}
