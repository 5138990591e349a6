// State of the view of `manycore top`, and its changes by keys. Pure: keys are given by their names in
// `node:readline`.

import type { ProgramView, WorkerView } from '../../../observe/index.js';

export interface State {
  /** Pid of the opened program; `undefined`: the list of all programs. */
  readonly opened: number | undefined;
  /** Pid of the chosen program in the list. */
  readonly chosen: number | undefined;
  readonly sort: SortName;
  readonly workerSort: WorkerSortName;
  /** Lines of the opened program above the visible part. */
  readonly scrolled: number;
  readonly isPaused: boolean;
  readonly isHelp: boolean;
}

export const sortNames = ['cpu', 'busy', 'lag', 'memory', 'tasks', 'requests', 'pid'] as const;
export type SortName = (typeof sortNames)[number];

export const workerSortNames = ['id', 'tasks', 'cpu', 'memory'] as const;
export type WorkerSortName = (typeof workerSortNames)[number];

export function firstState(opened: number | undefined): State {
  return {
    opened,
    chosen: opened,
    sort: 'cpu',
    workerSort: 'id',
    scrolled: 0,
    isPaused: false,
    isHelp: false,
  };
}

const pidOf = ({ pid }: ProgramView): number => pid;

const sortValues: Readonly<Record<SortName, (program: ProgramView) => number>> = {
  cpu: ({ summary }) => summary.cpuShare ?? 0,
  busy: ({ summary }) => summary.utilization ?? 0,
  // A silent thread counts as the longest lag.
  lag: ({ summary }) => (summary.silentThreads > 0 ? Infinity : (summary.lagP99Ms ?? 0)),
  memory: ({ summary }) => summary.rssBytes ?? 0,
  tasks: ({ summary }) => summary.tasksPerSecond ?? 0,
  requests: ({ summary }) => summary.requestsPerSecond ?? 0,
  pid: (program) => -pidOf(program),
};

/** Sorts programs, the largest first; equal ones by pid. */
export function sorted(programs: readonly ProgramView[], by: SortName): ProgramView[] {
  return descending(programs, sortValues[by], pidOf);
}

const workerSortValues: Readonly<Record<WorkerSortName, (worker: WorkerView) => number>> = {
  id: ({ id }) => -id,
  tasks: ({ tasksPerSecond }) => tasksPerSecond ?? 0,
  cpu: ({ cpuShare }) => cpuShare ?? 0,
  memory: ({ rssBytes }) => rssBytes ?? 0,
};

export function sortedWorkers(workers: readonly WorkerView[], by: WorkerSortName): WorkerView[] {
  return descending(workers, workerSortValues[by], ({ id }) => id);
}

function descending<T>(
  items: readonly T[],
  valueOf: (item: T) => number,
  idOf: (item: T) => number,
): T[] {
  return [...items].sort((a, b) => {
    const [first, second] = [valueOf(a), valueOf(b)];
    return first === second ? idOf(a) - idOf(b) : second > first ? 1 : -1;
  });
}

/** Effect of a key besides a change of state. */
export type Effect = 'quit' | 'suspend';

/** `pageLines`: number of visible lines. */
export function pressed(
  state: State,
  key: string,
  programs: readonly ProgramView[],
  pageLines: number,
): State | Effect {
  if (key === 'q' || key === 'ctrl-c') return 'quit';
  if (key === 'ctrl-z') return 'suspend';
  if (key === '?' || key === 'h') return { ...state, isHelp: !state.isHelp };
  if (state.isHelp) return { ...state, isHelp: false };
  if (key === 'p' || key === 'space') return { ...state, isPaused: !state.isPaused };
  return state.opened === undefined
    ? pressedInList(state, key, programs, pageLines)
    : pressedInProgram(state, key, pageLines);
}

function pressedInList(
  state: State,
  key: string,
  programs: readonly ProgramView[],
  pageLines: number,
): State {
  if (key === 's') return { ...state, sort: after(sortNames, state.sort) };
  const order = sorted(programs, state.sort).map(pidOf);
  const chosen = chosenOf(state, order);
  if (key === 'return' || key === 'right') return { ...state, chosen, opened: chosen, scrolled: 0 };
  const step = stepOf(key, pageLines);
  if (step === undefined) return state;
  const at = chosen === undefined ? 0 : order.indexOf(chosen);
  const next = Math.min(order.length - 1, Math.max(0, at + step));
  return { ...state, chosen: order[next] };
}

/** Pid of the chosen program; the first one when none is chosen, or it has ended. */
export function chosenOf({ chosen }: State, order: readonly number[]): number | undefined {
  return chosen !== undefined && order.includes(chosen) ? chosen : order[0];
}

function pressedInProgram(state: State, key: string, pageLines: number): State {
  if (['escape', 'left', 'backspace'].includes(key)) return { ...state, opened: undefined };
  if (key === 's') return { ...state, workerSort: after(workerSortNames, state.workerSort) };
  const step = stepOf(key, pageLines);
  return step === undefined
    ? state
    : { ...state, scrolled: Math.max(0, Math.min(state.scrolled, maxScrolled) + step) };
}

/** Larger than any number of lines; the screen limits it to the end. */
const maxScrolled = 1e6;

function stepOf(key: string, pageLines: number): number | undefined {
  switch (key) {
    case 'up':
    case 'k':
      return -1;
    case 'down':
    case 'j':
      return 1;
    case 'pageup':
      return -pageLines;
    case 'pagedown':
      return pageLines;
    case 'home':
      return -maxScrolled;
    case 'end':
      return maxScrolled;
    default:
      return undefined;
  }
}

function after<T>(names: readonly T[], name: T): T {
  return names[(names.indexOf(name) + 1) % names.length] ?? name;
}
