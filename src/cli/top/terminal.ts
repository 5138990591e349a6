// The terminal while `manycore top` has it: the other screen, no cursor, keys one by one; and given back as
// it was, whatever ends the program. Only lines that changed are written, each at its place, so that a
// character that the terminal shows wider than we think spoils nothing but its own line.
// A terminal that calls itself dumb can do none of that: it gets line after line.

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

/** Long lines are cut, not continued: ansi-escapes has no name for it. */
const wrapOff = '\u001b[?7l';
const wrapOn = '\u001b[?7h';

const styles: Readonly<Record<Exclude<Tone, 'plain'>, Parameters<typeof styleText>[0]>> = {
  head: 'bold',
  dim: 'dim',
  good: 'green',
  warning: 'yellow',
  alarm: 'red',
};

/** Who ends us so wants the terminal back first. */
const endingSignals = ['SIGTERM', 'SIGHUP', 'SIGINT'] as const;
const signalExitCodes = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

export interface Events {
  readonly onKey: (key: string) => void;
  /** Draw again: it has another size, or was away. */
  readonly onChange: () => void;
}

/** Whether there is one, for output and for keys. */
export function hasTerminal(): boolean {
  return process.stdin.isTTY === true && process.stdout.isTTY === true;
}

export class Terminal implements Disposable {
  readonly #events: Events;
  readonly #isDumb = process.env['TERM'] === 'dumb';
  /** Asks the environment, too: NO_COLOR, FORCE_COLOR, TERM. */
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

  /** No more lines than there are rows. */
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
   * Stops as a shell expects it from Ctrl-Z: with all processes of its job, such as the npx that has started
   * it. Comes back with SIGCONT, or at once where nobody is there to continue a job: the system does not
   * stop it then.
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

  /** Also the last thing before the end, also of a crash: nothing may wait here. */
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
