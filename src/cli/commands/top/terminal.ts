// The terminal during `manycore top`: alternative screen, hidden cursor, raw keys; restored however the
// program ends. Only changed lines are written, each at its position, so that a character of unexpected width
// spoils only its own line.
// A dumb terminal (TERM) has none of these functions: it gets line after line.

import { writeSync } from 'node:fs';
import { emitKeypressEvents, type Key } from 'node:readline';
import { styleText } from 'node:util';
import {
  beginSynchronizedOutput,
  cursorHide,
  cursorShow,
  cursorTo,
  endSynchronizedOutput,
  enterAlternativeScreen,
  eraseLine,
  eraseScreen,
  exitAlternativeScreen,
} from 'ansi-escapes';
import type { Size } from './screen.js';
import type { Line, Tone } from './table.js';

/** Disables line wrapping; ansi-escapes has no name for it. */
const wrapOff = '\u001b[?7l';
const wrapOn = '\u001b[?7h';

const styles: Readonly<Record<Exclude<Tone, 'plain'>, Parameters<typeof styleText>[0]>> = {
  head: 'bold',
  dim: 'dim',
  good: 'green',
  warning: 'yellow',
  alarm: 'red',
};

/** Signals that end the program, after the terminal is restored. */
const endingSignals = ['SIGTERM', 'SIGHUP', 'SIGINT'] as const;
const signalExitCodes = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

export interface Events {
  readonly onKey: (key: string) => void;
  /** The terminal was resized, or the program continued: draw again. */
  readonly onChange: () => void;
}

/** True: standard input and output are terminals. */
export function hasTerminal(): boolean {
  return process.stdin.isTTY === true && process.stdout.isTTY === true;
}

export class Terminal implements Disposable {
  readonly #events: Events;
  readonly #isDumb = process.env['TERM'] === 'dumb';
  /** Depends on the environment, too: NO_COLOR, FORCE_COLOR, TERM. */
  readonly #hasColors = process.stdout.hasColors();
  #shown: string[] = [];
  #isOurs = false;
  #isClosed = false;

  constructor(events: Events) {
    this.#events = events;
    emitKeypressEvents(process.stdin);
    process.stdin.on('keypress', this.#onKey);
    process.stdout.on('resize', this.#onResize);
    process.on('exit', this.#leave);
    process.on('SIGCONT', this.#onContinue);
    process.on('SIGTSTP', this.suspend);
    for (const signal of endingSignals) process.on(signal, this.#onSignal);
    this.#enter();
    process.stdin.resume();
  }

  get size(): Size {
    return { columns: process.stdout.columns, rows: process.stdout.rows };
  }

  /** Draws at most as many lines as rows. */
  draw(lines: readonly Line[]): void {
    const painted = lines.map((line) => this.#paint(line));
    if (this.#isDumb) {
      const last = painted.findLastIndex((line) => line.trim() !== '');
      process.stdout.write(`${painted.slice(0, last + 1).join('\n')}\n\n`);
      return;
    }
    const rows = Math.max(painted.length, this.#shown.length);
    let text = '';
    for (let row = 0; row < rows; row += 1) {
      const line = painted[row] ?? '';
      if (line !== this.#shown[row]) text += cursorTo(0, row) + eraseLine + line;
    }
    this.#shown = painted;
    if (text !== '') process.stdout.write(beginSynchronizedOutput + text + endSynchronizedOutput);
  }

  /**
   * Stops the whole job, as a shell expects at Ctrl-Z, with processes such as the npx that started it.
   * Returns at SIGCONT, or at once in an orphaned process group, which the system does not stop.
   */
  readonly suspend = (): void => {
    this.#leave();
    process.off('SIGTSTP', this.suspend);
    process.kill(0, 'SIGTSTP');
    setImmediate(() => {
      if (this.#isClosed) return;
      process.on('SIGTSTP', this.suspend);
      this.#onContinue();
    });
  };

  [Symbol.dispose](): void {
    process.stdin.off('keypress', this.#onKey);
    process.stdin.pause();
    process.stdout.off('resize', this.#onResize);
    process.off('exit', this.#leave);
    process.off('SIGCONT', this.#onContinue);
    process.off('SIGTSTP', this.suspend);
    this.#isClosed = true;
    for (const signal of endingSignals) process.off(signal, this.#onSignal);
    this.#leave();
  }

  #paint(line: Line): string {
    return line
      .map(({ text, tone }) =>
        this.#hasColors && tone !== 'plain' && text.trim() !== ''
          ? styleText(styles[tone], text)
          : text,
      )
      .join('');
  }

  #enter(): void {
    this.#isOurs = true;
    this.#shown = [];
    process.stdin.setRawMode(true);
    if (this.#isDumb) return;
    process.stdout.write(enterAlternativeScreen + cursorHide + wrapOff + eraseScreen);
  }

  /** Restores the terminal. Runs at exit, also after a crash: it must be synchronous. */
  readonly #leave = (): void => {
    if (!this.#isOurs) return;
    this.#isOurs = false;
    try {
      process.stdin.setRawMode(false);
      if (!this.#isDumb) writeSync(1, wrapOn + cursorShow + exitAlternativeScreen);
    } catch {
      // The terminal is gone.
    }
  };

  readonly #onKey = (text: string | undefined, key: Key): void => {
    const name = key.ctrl ? `ctrl-${key.name}` : (key.name ?? text ?? '');
    this.#events.onKey(name === 'enter' ? 'return' : name);
  };

  readonly #onResize = (): void => {
    this.#shown = [];
    if (!this.#isDumb) process.stdout.write(eraseScreen);
    this.#events.onChange();
  };

  readonly #onContinue = (): void => {
    this.#leave();
    this.#enter();
    this.#events.onChange();
  };

  readonly #onSignal = (signal: keyof typeof signalExitCodes): void => {
    process.exit(signalExitCodes[signal]); // calls #leave
  };
}
