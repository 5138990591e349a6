// A command in a terminal of its own: script(1) of util-linux gives it a pseudo-terminal, and an emulator
// shows what a person would see there.

import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { readlinkSync } from 'node:fs';
import type { TestContext } from 'node:test';
import headless from '@xterm/headless';
import { childrenOf, waitFor } from '../support/index.js';

/** Reason why there is no terminal for tests here; `false` if there is one. */
export const noPseudoTerminal =
  spawnSync('script', ['--version']).error !== undefined && 'there is no script(1) (util-linux)';

/** Variables that set the number of colours elsewhere: a machine that runs tests often has `CI` set. */
const colorVariables = ['CI', 'NO_COLOR', 'FORCE_COLOR', 'NODE_DISABLE_COLORS', 'COLORTERM'];

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** A path as a word of a shell, also of one inside the double quotes of another. */
export const shellWord = (path: string): string => path.replace(/[^\w/.-]/g, '\\$&');

export class PseudoTerminal {
  readonly #screen: headless.Terminal;
  readonly #child: ReturnType<typeof spawn>;
  readonly #ended: Promise<number | null>;
  /** All that was written to it. */
  output = '';

  /** Runs a line of shell; ends with the test. */
  constructor(t: TestContext, line: string, size: Size, env: NodeJS.ProcessEnv = {}) {
    this.#screen = new headless.Terminal({
      cols: size.columns,
      rows: size.rows,
      allowProposedApi: true,
      convertEol: false,
    });
    const sized = `stty rows ${size.rows} cols ${size.columns}; ${line}`;
    this.#child = spawn('script', ['-q', '-e', '-f', '-c', sized, '/dev/null'], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...personEnvironment(), TERM: 'xterm-256color', SHELL: '/bin/sh', ...env },
    });
    t.after(() => {
      this.#screen.dispose();
      this.#child.kill('SIGKILL');
    });
    this.#child.stdin?.on('error', () => {});
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.output += text;
      this.#screen.write(text);
    });
    this.#ended = new Promise((resolve) => this.#child.on('close', resolve));
  }

  /** Resolves with the exit code. */
  get ended(): Promise<number | null> {
    return this.#ended;
  }

  /** Pid of the shell, or of the program that replaced it with `exec`. */
  get pid(): number | undefined {
    return childrenOf(this.#child.pid ?? 0)[0]?.pid;
  }

  /** Visible lines, without white space at their end. */
  get lines(): string[] {
    const { active } = this.#screen.buffer;
    return Array.from({ length: this.#screen.rows }, (_, row) => {
      const line = active.getLine(active.baseY + row);
      return line?.translateToString(true) ?? '';
    });
  }

  get text(): string {
    return this.lines.join('\n');
  }

  /** True: a program uses the alternate screen. */
  get isOtherScreen(): boolean {
    return this.#screen.buffer.active.type === 'alternate';
  }

  /** True: something visible has a colour or is bold. */
  get isStyled(): boolean {
    const { active } = this.#screen.buffer;
    for (let row = 0; row < this.#screen.rows; row += 1) {
      const line = active.getLine(active.baseY + row);
      for (let column = 0; column < this.#screen.cols; column += 1) {
        const cell = line?.getCell(column);
        if (cell !== undefined && !cell.isAttributeDefault()) return true;
      }
    }
    return false;
  }

  press(keys: string): void {
    this.#child.stdin?.write(keys);
  }

  resize({ columns, rows }: Size): void {
    const device = readlinkSync(`/proc/${this.pid}/fd/0`);
    this.#screen.resize(columns, rows);
    execFileSync('stty', ['-F', device, 'rows', String(rows), 'cols', String(columns)]);
  }

  async sees(pattern: RegExp): Promise<string> {
    try {
      await waitFor(() => pattern.test(this.text), undefined, `${pattern} is seen`);
    } catch (cause) {
      throw new Error(`${pattern} is not seen:\n${this.text}`, { cause });
    }
    return this.text;
  }
}

/** Ours, as a person in front of a terminal has it. */
function personEnvironment(): NodeJS.ProcessEnv {
  const env = { ...process.env };
  for (const name of colorVariables) delete env[name];
  return env;
}
