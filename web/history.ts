// Recent data of the opened program, for the time span of charts and the time line.

import type { TaskSlice } from '../src/agent/stats.js';
import type { TasksEvent } from '../src/observe/dashboard/protocol.js';
import { shortTitle } from '../src/observe/format.js';
import type { PoolView, ProgramView, ServerView } from '../src/observe/views/view-types.js';
import { ThreadClock } from './clock.js';

export const windowMs = 30_000;
const chartMs = 120_000;
/** Time without views that counts as a gap: a poll takes a second, and one more for a silent thread. */
const gapMs = 4000;
const maxNotes = 8;
const maxLongTasks = 8;

/** A slice with times by the clock of the page. */
export interface PlacedSlice {
  readonly fromMs: number;
  readonly toMs: number;
  /** Offset to add to the times of its tasks. */
  readonly offsetMs: number;
  readonly slice: TaskSlice;
}

export interface LongTask {
  readonly name: string;
  readonly worker: number;
  readonly ranMs: number;
  readonly isFailed: boolean;
}

/** One point in time of the charts. */
export interface Moment {
  readonly seconds: number;
  readonly lagMs: ReadonlyMap<string, number | undefined>;
  readonly tasksPerSecond: number | undefined;
  readonly waitingTasks: number | undefined;
}

const nothing = { lagMs: new Map(), tasksPerSecond: undefined, waitingTasks: undefined };

export class History {
  readonly #slices = new Map<string, PlacedSlice[]>();
  readonly #clocks = new Map<string, ThreadClock>();
  #moments: Moment[] = [];
  /** Events of workers and processes, the latest first. */
  readonly notes: { readonly at: string; readonly text: string }[] = [];
  /** Workers of each pool that has answered. */
  readonly #workers = new Map<string, ReadonlySet<number>>();
  /** Pids of server processes. */
  readonly #processes = new Map<string, number>();

  noteTasks(
    { pid, thread, slice }: TasksEvent,
    nowMs: number,
  ): { key: string; placed: PlacedSlice } {
    const key = `${pid}.${thread}`;
    const clock = this.#clocks.get(key) ?? new ThreadClock();
    this.#clocks.set(key, clock);
    clock.note(slice.toMs, nowMs);
    const toMs = clock.toPage(slice.toMs);
    const offsetMs = toMs - slice.toMs;
    const placed = { fromMs: slice.fromMs + offsetMs, toMs, offsetMs, slice };
    const slices = this.#slices.get(key) ?? [];
    this.#slices.set(key, slices);
    slices.push(placed);
    this.#forget(nowMs);
    return { key, placed };
  }

  /** Drops old slices of all threads, also of those that have ended and send no more. */
  #forget(nowMs: number): void {
    for (const [key, slices] of this.#slices) {
      const from = slices.findIndex((each) => each.toMs > nowMs - windowMs);
      if (from === -1) this.#slices.delete(key);
      else if (from > 0) slices.splice(0, from);
    }
  }

  slicesOf(key: string): readonly PlacedSlice[] {
    return this.#slices.get(key) ?? [];
  }

  noteView({ threads, summary, pools, servers }: ProgramView, now: Date): void {
    this.#moments.push({
      seconds: now.getTime() / 1000,
      lagMs: new Map(threads.map(({ pid, role, lagP99Ms }) => [`${pid} ${role}`, lagP99Ms])),
      tasksPerSecond: summary.tasksPerSecond,
      waitingTasks: summary.waitingTasks,
    });
    const oldest = (now.getTime() - chartMs) / 1000;
    this.#moments = this.#moments.filter(({ seconds }) => seconds >= oldest);
    for (const pool of pools) this.#noteWorkers(pool, now);
    for (const server of servers) this.#noteProcesses(server, now);
  }

  /** Moments of the charts, with an empty one at each gap. */
  momentsWithGaps(): Moment[] {
    return this.#moments.flatMap((moment, at) => {
      const before = this.#moments[at - 1]?.seconds ?? moment.seconds;
      const isAfterGap = (moment.seconds - before) * 1000 > gapMs;
      return isAfterGap
        ? [{ ...nothing, seconds: (before + moment.seconds) / 2 }, moment]
        : [moment];
    });
  }

  /** A silent pool reports no changes of its workers; workers of a new pool did not just start. */
  #noteWorkers({ pid, thread, id, workers, isSilent }: PoolView, now: Date): void {
    if (isSilent) return;
    const key = `${pid}.${thread}.${id}`;
    const before = this.#workers.get(key);
    const ids = new Set(workers.map((worker) => worker.id));
    this.#workers.set(key, ids);
    if (before === undefined) return;
    const name = (worker: number): string => `worker ${worker} of pool ${id}`;
    for (const worker of before) if (!ids.has(worker)) this.#note(now, `${name(worker)} has ended`);
    for (const worker of ids)
      if (!before.has(worker)) this.#note(now, `${name(worker)} has started`);
  }

  #noteProcesses({ key: server, app, loops }: ServerView, now: Date): void {
    for (const { process, pid, lastExit } of loops) {
      const key = `${server} ${process}`;
      const before = this.#processes.get(key);
      if (pid === undefined || pid === before) continue;
      this.#processes.set(key, pid);
      if (before === undefined) continue;
      const why = lastExit === undefined ? '' : ` (${lastExit})`;
      this.#note(now, `process ${process} of ${shortTitle(app)} was replaced${why}`);
    }
  }

  #note(now: Date, text: string): void {
    this.notes.unshift({ at: now.toLocaleTimeString(), text });
    this.notes.length = Math.min(this.notes.length, maxNotes);
  }

  /** The longest tasks of the window, over all threads. */
  longestTasks(): LongTask[] {
    const all = [...this.#slices.values()].flatMap((slices) =>
      slices.flatMap(({ slice }) => slice.tasks),
    );
    return all
      .map(({ name, worker, startMs, endMs, isFailed }) => {
        return { name, worker, ranMs: endMs - startMs, isFailed };
      })
      .sort((a, b) => b.ranMs - a.ranMs)
      .slice(0, maxLongTasks);
  }

  /**
   * Histogram of the durations or waits of tasks in the window: `[upper bound in ms, count]`, ascending,
   * without gaps.
   */
  durations(what: 'ran' | 'waited'): [number, number][] {
    const counts = new Map<number, number>();
    for (const slices of this.#slices.values()) {
      for (const { slice } of slices) {
        for (const [upperMs, count] of slice[what]) {
          counts.set(upperMs, (counts.get(upperMs) ?? 0) + count);
        }
      }
    }
    const bounds = [...counts.keys()].sort((a, b) => a - b);
    const [first, last] = [bounds[0], bounds.at(-1)];
    const found: [number, number][] = [];
    if (first === undefined || last === undefined) return found;
    // Bounds are powers of two.
    for (let bound = first; bound <= last; bound *= 2) found.push([bound, counts.get(bound) ?? 0]);
    return found;
  }
}
