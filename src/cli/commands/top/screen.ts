// Screen of `manycore top`, line by line. Pure: a function of views and state. Not here: the terminal
// (terminal.ts), the columns (columns.ts).

import { type ProgramView, shortTitle } from '../../../observe/index.js';
import { programColumns, programSections } from './columns.js';
import { chosenOf, type State, sorted } from './state.js';
import { cutLine, type Line, tableLines, words } from './table.js';

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

const minColumns = 60;
const minRows = 10;
/** Rows above and below the scrolled part. */
const frameRows = 3;

export function pageLinesOf({ rows }: Size): number {
  return Math.max(1, rows - frameRows);
}

export interface Screen {
  /** At most as many as rows, none wider than the terminal. */
  readonly lines: readonly Line[];
  /** The shown state, with the scroll position limited to the end. */
  readonly state: State;
}

/** `programs`: `undefined` before the first poll. */
export function screenOf(
  programs: readonly ProgramView[] | undefined,
  state: State,
  size: Size,
): Screen {
  const { columns, rows } = size;
  if (columns < minColumns || rows < minRows) {
    const text = `too small: ${columns}x${rows}, needs ${minColumns}x${minRows}`;
    return { lines: [cutLine(words(text), columns)], state };
  }
  const body = bodyOf(programs, state, columns);
  const room = pageLinesOf(size);
  const scrolled = Math.max(0, Math.min(body.scrolled(room), body.lines.length - room));
  const seen = body.lines.slice(scrolled, scrolled + room);
  const below = body.lines.length - scrolled - room;
  const lines = [
    titleLine(programs, state, below),
    ...body.head,
    ...seen,
    ...Array.from({ length: room - seen.length }, (): Line => []),
    words(hints(state, columns), 'dim'),
  ];
  return {
    lines: lines.slice(0, rows).map((line) => cutLine(line, columns)),
    state: state.opened === undefined ? state : { ...state, scrolled },
  };
}

interface Body {
  /** One line that does not scroll. */
  readonly head: readonly Line[];
  readonly lines: readonly Line[];
  readonly scrolled: (room: number) => number;
}

function bodyOf(programs: readonly ProgramView[] | undefined, state: State, width: number): Body {
  const still = (lines: readonly Line[]): Body => ({ head: [[]], lines, scrolled: () => 0 });
  if (state.isHelp) return still(help.map((line) => words(line)));
  if (programs === undefined) return still([words('searching for programs ...')]);
  if (state.opened !== undefined) {
    const program = programs.find(({ pid }) => pid === state.opened);
    if (program === undefined) {
      return still([words(`program ${state.opened} has ended, or does not exist: Esc goes back`)]);
    }
    const lines = programLines(program, state, width);
    return { head: [[]], lines, scrolled: () => state.scrolled };
  }
  if (programs.length === 0) return still([words(noPrograms)]);
  const order = sorted(programs, state.sort);
  const pids = order.map(({ pid }) => pid);
  const chosen = chosenOf(state, pids);
  const at = chosen === undefined ? -1 : pids.indexOf(chosen);
  const [head = [], ...lines] = tableLines(programColumns, order, width, order[at]);
  return { head: [head], lines, scrolled: (room) => at - room + 1 };
}

export const noPrograms = 'no program that uses manycore runs';

/** All tables of one program. */
export function programLines(
  program: ProgramView,
  { workerSort }: Pick<State, 'workerSort'>,
  width: number | undefined,
): Line[] {
  return programSections(program, workerSort, width).flatMap(({ title, note, lines }, at) => [
    ...(at === 0 ? [] : [[]]),
    [
      { text: title, tone: 'head' as const },
      { text: note === '' ? '' : `  ${note}`, tone: 'dim' as const },
    ],
    ...lines,
  ]);
}

function titleLine(
  programs: readonly ProgramView[] | undefined,
  { opened, isPaused }: State,
  below: number,
): Line {
  const program = programs?.find(({ pid }) => pid === opened);
  const count = programs?.length ?? 0;
  const what =
    program === undefined
      ? `${count} program${count === 1 ? '' : 's'}`
      : `${program.pid} ${shortTitle(program.title)}`;
  const more = below > 0 ? `  ${below} more line${below === 1 ? '' : 's'} below` : '';
  return [
    ...words('manycore top', 'head'),
    ...words(`  ${what}`),
    ...words(isPaused ? '  PAUSED' : '', 'warning'),
    ...words(more, 'dim'),
  ];
}

/** Key hints that fit, the most important first. */
function hints({ opened, sort, workerSort, isHelp }: State, columns: number): string {
  const inList = ['Enter open', `s sort: ${sort}`, 'p pause', 'up/down choose'];
  const inProgram = ['Esc back', `s sort workers: ${workerSort}`, 'p pause', 'up/down scroll'];
  const keys = ['q quit', '? help', ...(opened === undefined ? inList : inProgram)];
  if (isHelp) return 'any key: back   q quit';
  while (keys.join('   ').length > columns) keys.pop();
  return keys.join('   ');
}

const help = [
  'Keys',
  '  up, down, j, k      choose a program, or scroll',
  '  PgUp, PgDn          a page',
  '  Home, End           the first, the last',
  '  Enter, right        open the chosen program',
  '  Esc, left           back to all programs',
  '  s                   sort by the next column; in a program, its workers',
  '  p, space            pause, and go on',
  '  q, Ctrl-C           quit',
  '',
  'Columns',
  '  busy     share of time in which the event loop had work (the busiest loop)',
  '  lag      how late timers were, 99th percentile of the last second',
  '  cpu      100% is one core',
  '  workers  busy/all: processes and threads that run tasks',
  '  wait     tasks that wait for a worker; for a pool, the durations of waits',
  '  ended    workers that have ended, for any reason',
  '  lost     workers and server processes that ended unexpectedly',
];
