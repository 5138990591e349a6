// Judges histories of queues. An item has no version, and neither end of a queue shows how often it was set.
// But where one worker alone puts, or one alone takes, its order is the order of the items. Each item then has
// a place, so that a queue is a row of variables: `item k` is empty, there (version 1) and taken (version 2),
// and versions k of `back` and `front` come with the item that is put and taken as number k.
// Not here: the order of runs on variables (history.ts).

import { contradictionIn, type Run, type Version } from './history.js';

/** One operation on a queue. */
export interface Step {
  readonly queue: number;
  /** `none`, `full`: there was nothing to take, no room to put. */
  readonly what: 'put' | 'take' | 'none' | 'full';
  /** Another one for each item that is put. */
  readonly item?: number;
}

/** An attempt; those of one worker are in their order. Its reads and writes are of other variables. */
export interface QueueRun extends Run {
  readonly worker: number;
  readonly steps: readonly Step[];
}

export interface Queue {
  readonly capacity: number;
  /** The worker that alone puts, or takes all but the rest that is taken in the end. */
  readonly alone: readonly [what: 'put' | 'take', worker: number];
}

/** Returns what contradicts an order of the runs, the last of which have emptied the queues. */
export function contradictionInQueues(
  queues: readonly Queue[],
  runs: readonly QueueRun[],
): string | undefined {
  const rows = queues.map((queue, at) => new Row(at, queue, runs));
  const problem = rows.find((row) => row.problem !== undefined)?.problem;
  return problem ?? contradictionIn(runs.map((run) => withVariables(run, rows)));
}

function withVariables(run: QueueRun, rows: readonly Row[]): Run {
  const [reads, writes] = [[...run.reads], [...run.writes]];
  for (const row of rows) row.add({ run, reads, writes, done: 0, own: [], last: {} });
  return { ...run, reads, writes };
}

type End = 'front' | 'back';

/** One run as it becomes reads and writes of variables. */
interface Progress {
  readonly run: QueueRun;
  readonly reads: Version[];
  readonly writes: Version[];
  /** Operations that give the items their order. */
  done: number;
  /** Items that it has put and not taken. */
  own: readonly number[];
  /** Places of what it has put and taken last. */
  last: Readonly<Partial<Record<End, number>>>;
}

/** The items of one queue as variables. */
class Row {
  /** An item that was not taken once, in words. */
  readonly problem: string | undefined;
  readonly #name: string;
  readonly #at: number;
  readonly #queue: Queue;
  /** Items by their place, less 1. */
  readonly #items: readonly number[];
  readonly #places: ReadonlyMap<number, number>;
  /** Transactions by the items that they put and took. */
  readonly #by: Readonly<Record<End, ReadonlyMap<number, number>>>;
  /** Operations of the runs before that give the items their order. */
  #done = 0;

  constructor(at: number, queue: Queue, runs: readonly QueueRun[]) {
    const [puts, takes] = [itemsOf(runs, at, 'put'), itemsOf(runs, at, 'take')];
    this.#name = `of queue ${at}`;
    this.#at = at;
    this.#queue = queue;
    this.#by = { back: new Map(puts), front: new Map(takes) };
    this.#items = (queue.alone[0] === 'put' ? puts : takes).map(([item]) => item);
    this.#places = new Map(this.#items.map((item, index) => [item, index + 1]));
    const seen = new Set<number>();
    const twice = takes.find(([item]) => seen.size === seen.add(item).size);
    const missing = puts.find(([item]) => !seen.has(item));
    if (twice !== undefined) this.problem = `item ${twice[0]} ${this.#name} was taken twice`;
    else if (missing !== undefined) this.problem = `item ${missing[0]} ${this.#name} was lost`;
  }

  /** Adds what a run has read and set here. */
  add(progress: Progress): void {
    const { run } = progress;
    const [sort, worker] = this.#queue.alone;
    for (const { what, item = 0 } of run.steps.filter(({ queue }) => queue === this.#at)) {
      if (what === 'put') this.#put(progress, item);
      else if (what === 'take') this.#take(progress, item);
      else if (worker === run.worker && this.#isAsBefore(progress)) this.#refuse(progress, what);
      if (what === 'none' && progress.own.length > 0)
        progress.reads.push(neverWas(`order ${this.#name}`));
      if (what === sort && worker === run.worker) progress.done += 1;
    }
    if (run.isInVain !== true) this.#done += progress.done;
  }

  /** False: its changes have given the queue ends that no other run has seen. */
  #isAsBefore({ run, last, own }: Progress): boolean {
    return run.isInVain !== true || (last.front === undefined && own.length === 0);
  }

  #put(progress: Progress, item: number): void {
    const { run, reads, writes, done } = progress;
    const { capacity, alone } = this.#queue;
    const isAlone = alone[0] === 'put' && alone[1] === run.worker;
    const place = this.#places.get(item) ?? (isAlone ? this.#done + done + 1 : 0);
    if (place > capacity && this.#isAsBefore(progress)) reads.push(this.#item(place - capacity, 2));
    progress.own = [...progress.own, item];
    if (run.isInVain === true) return;
    this.#move(progress, 'back', place);
    writes.push(this.#item(place, 1));
  }

  #take(progress: Progress, item: number): void {
    const { run, reads, writes, own, last } = progress;
    progress.own = own.filter((each) => each !== item);
    const place = this.#places.get(item) ?? 0;
    if (run.isInVain !== true) writes.push(this.#item(place, 2));
    else if (own.includes(item)) {
      progress.last = { ...last, front: place }; // the queue has only items of its own now
      return;
    }
    reads.push(this.#item(place, 1));
    this.#move(progress, 'front', place);
  }

  /** Moves an end of the queue behind the item at `place`. */
  #move(progress: Progress, end: End, place: number): void {
    const { run, reads, writes, last } = progress;
    if (last[end] === undefined) reads.push(this.#end(end, place - 1));
    else if (last[end] !== place - 1) reads.push(neverWas(`order ${this.#name}`));
    if (run.isInVain !== true) writes.push(this.#end(end, place));
    progress.last = { ...last, [end]: place };
  }

  /** The worker that is alone has the number of one end; the other end was as near, or as far, as can be. */
  #refuse({ reads, done }: Progress, what: 'none' | 'full'): void {
    const known = this.#done + done;
    const { capacity, alone } = this.#queue;
    if (alone[0] === 'put')
      reads.push(this.#end('front', what === 'none' ? known : known - capacity));
    else if (what === 'full') reads.push(this.#item(known + capacity, 1));
    else reads.push({ ...this.#item(known + 1, 1), count: 0, by: 0 });
  }

  #item(place: number, count: 1 | 2): Version {
    const { by } = this.#end(count === 1 ? 'back' : 'front', place);
    return { variable: `item ${place} ${this.#name}`, count, by };
  }

  #end(end: End, count: number): Version {
    const by = count === 0 ? 0 : this.#by[end].get(this.#items[count - 1] ?? 0);
    return { variable: `${end} ${this.#name}`, count, by: by ?? nobody };
  }
}

/** No transaction. */
const nobody = -1;

function neverWas(variable: string): Version {
  return { variable, count: 0, by: nobody };
}

/** Items that were put, or taken, and the transactions that did so. */
function itemsOf(
  runs: readonly QueueRun[],
  queue: number,
  what: 'put' | 'take',
): (readonly [item: number, by: number])[] {
  const committed = runs.filter(({ isInVain }) => isInVain !== true);
  return committed.flatMap(({ id, steps }) =>
    steps
      .filter((step) => step.queue === queue && step.what === what)
      .map(({ item = 0 }) => [item, id] as const),
  );
}
