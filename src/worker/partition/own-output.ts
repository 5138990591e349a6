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

/** Returns the last line that is not empty; `undefined`: there is none. */
function lastLine(text: string): string | undefined {
  return text.split('\n').findLast((line) => line.trim() !== '');
}

/** The line of a kernel that ends itself; a stack and other numbers follow it. */
const panic = /Kernel panic - .*/;

/** Keeps the line on stderr that is likely to name the cause of an end: a panic, else the last. */
export class CauseLine {
  /** Without characters that a terminal would obey. */
  text = '';
  hasPanicked = false;

  add(text: string): void {
    if (this.hasPanicked) return;
    const [line] = panic.exec(text) ?? [];
    this.hasPanicked = line !== undefined;
    this.text = printable(line ?? lastLine(text) ?? this.text);
  }
}
