// `manycore top`: shows the manycore programs of this user, live in the terminal, as one table, or as JSON.

import { setTimeout as pause } from 'node:timers/promises';
import { CodedError } from '../../../errors.js';
import { ProgramSampler, type ProgramView, shortTitle } from '../../../observe/index.js';
import { programColumns } from './columns.js';
import { noPrograms, pageLinesOf, programLines, screenOf } from './screen.js';
import { firstState, pressed, type State, sorted } from './state.js';
import { type Line, tableLines, words } from './table.js';
import { hasTerminal, Terminal } from './terminal.js';

export interface TopFlags {
  readonly json?: boolean;
  readonly once?: boolean;
}

/** Interval between two polls. */
const refreshMs = 1000;

/**
 * Shows all programs, or the one of `pid`. Rejects with `TOP_NO_TERMINAL`, `OBSERVE_PROGRAM_NOT_FOUND`,
 * `RUNTIME_FOLDER_REFUSED`.
 */
export async function showPrograms(
  pid: number | undefined,
  { json = false, once = false }: TopFlags,
): Promise<void> {
  if (!json && !once) {
    await watch(pid);
    return;
  }
  const programs = await pollTwice(pid);
  if (json) console.log(JSON.stringify(programs, undefined, 2));
  else for (const line of plainLines(programs, pid)) console.log(plain(line));
}

/** Polls twice, because rates need two polls. */
async function pollTwice(pid: number | undefined): Promise<ProgramView[]> {
  using sampler = new ProgramSampler();
  const isMeant = (program: ProgramView): boolean => pid === undefined || program.pid === pid;
  const first = (await sampler.sample()).filter(isMeant);
  if (pid !== undefined && first.length === 0) throw notFound(pid);
  if (first.length === 0) return [];
  await pause(refreshMs);
  return (await sampler.sample()).filter(isMeant);
}

function notFound(pid: number): CodedError {
  return new CodedError(
    'OBSERVE_PROGRAM_NOT_FOUND',
    `no program of this user that uses manycore has the pid ${pid}: manycore top --once lists those that run`,
  );
}

function plainLines(programs: readonly ProgramView[], pid: number | undefined): readonly Line[] {
  const [program] = programs;
  if (program === undefined) return [words(noPrograms)];
  if (pid === undefined) return tableLines(programColumns, sorted(programs, 'cpu'), undefined);
  return [
    words(`${program.pid} ${shortTitle(program.title)}`),
    [],
    ...programLines(program, { workerSort: 'id' }, undefined),
  ];
}

function plain(line: Line): string {
  return line
    .map(({ text }) => text)
    .join('')
    .trimEnd();
}

async function watch(pid: number | undefined): Promise<void> {
  if (!hasTerminal()) {
    throw new CodedError(
      'TOP_NO_TERMINAL',
      'manycore top fills a terminal, and this is none: --once prints a table, --json prints JSON',
    );
  }
  using sampler = new ProgramSampler();
  await new Promise<void>((resolve, reject) => {
    const view = new View(sampler, pid, (error) => {
      view.close();
      if (error === undefined) resolve();
      else reject(error);
    });
    view.start();
  });
}

/** The view in the terminal, until it is left. */
class View {
  readonly #sampler: ProgramSampler;
  readonly #onEnd: (error: unknown) => void;
  readonly #terminal: Terminal;
  #state: State;
  #programs: readonly ProgramView[] | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isLeft = false;

  constructor(sampler: ProgramSampler, pid: number | undefined, onEnd: (error?: unknown) => void) {
    this.#sampler = sampler;
    this.#onEnd = onEnd;
    this.#state = firstState(pid);
    this.#terminal = new Terminal({ onKey: this.#onKey, onChange: () => this.#draw() });
  }

  start(): void {
    this.#draw();
    void this.#refresh();
  }

  close(): void {
    this.#isLeft = true;
    clearTimeout(this.#timer);
    this.#terminal[Symbol.dispose]();
  }

  async #refresh(): Promise<void> {
    try {
      if (!this.#state.isPaused) {
        const programs = await this.#sampler.sample();
        if (this.#isLeft) return;
        // Paused during the poll: keep the shown state.
        if (!this.#state.isPaused) this.#programs = programs;
        this.#draw();
      }
      this.#timer = setTimeout(() => void this.#refresh(), refreshMs);
    } catch (error) {
      if (!this.#isLeft) this.#onEnd(error);
    }
  }

  #draw(): void {
    const { lines, state } = screenOf(this.#programs, this.#state, this.#terminal.size);
    this.#state = state;
    this.#terminal.draw(lines);
  }

  readonly #onKey = (key: string): void => {
    const next = pressed(this.#state, key, this.#programs ?? [], pageLinesOf(this.#terminal.size));
    if (next === 'quit') this.#onEnd(undefined);
    else if (next === 'suspend') this.#terminal.suspend();
    else {
      this.#state = next;
      this.#draw();
    }
  };
}
