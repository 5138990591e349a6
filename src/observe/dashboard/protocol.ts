// Events from the dashboard to its pages: server-sent events with JSON. Page and server are of the same
// package, so values are not checked one by one; a page that receives another version reloads itself.

import type { TaskSlice } from '../../agent/index.js';
import type { ProgramView, SummaryView } from '../views/view-types.js';

export interface ProgramLine {
  readonly pid: number;
  readonly title: string;
  readonly summary: SummaryView;
}

/** The event `view`, sent once a second. */
export interface ViewEvent {
  /** Version of manycore of the server. */
  readonly version: string;
  readonly programs: readonly ProgramLine[];
  /** The program that the page has opened; missing: none, or it has ended. */
  readonly opened?: ProgramView | undefined;
}

/** The event `tasks`, for one thread of the opened program. */
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

/** Parses the event `problem`: the text of a failure in the server. */
export function parseProblem(text: string): string {
  return String(JSON.parse(text));
}
