// What the dashboard tells its pages, as server-sent events with JSON in them. A page comes from the same
// package as its server: what is told is not checked value by value, and a page that hears of another version
// loads itself anew.

import type { TaskSlice } from '../../agent/index.js';
import type { ProgramView, SummaryView } from '../view-types.js';

export interface ProgramLine {
  readonly pid: number;
  readonly title: string;
  readonly summary: SummaryView;
}

/** Once a second, as the event `view`. */
export interface ViewEvent {
  /** Of manycore: that of the server. */
  readonly version: string;
  readonly programs: readonly ProgramLine[];
  /** The one that the page asked for; missing where there is none. */
  readonly opened?: ProgramView | undefined;
}

/** As the event `tasks`, of a thread of the opened program. */
export interface TasksEvent {
  readonly pid: number;
  readonly thread: number;
  readonly slice: TaskSlice;
}

export function parseView(text: string): ViewEvent {
  return JSON.parse(text) as ViewEvent;
}

export function parseTasks(text: string): TasksEvent {
  return JSON.parse(text) as TasksEvent;
}

/** What the server cannot do, in its words. */
export function parseProblem(text: string): string {
  return String(JSON.parse(text));
}
