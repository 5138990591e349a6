// Decides how many workers a pool should have. Pure: the worker manager starts and stops them.

export interface Load {
  readonly minWorkers: number;
  /** Workers that are kept even if nothing waits. */
  readonly workersAtOnce: number;
  readonly maxWorkers: number;
  readonly minSpareWorkers: number;
  readonly maxSpareWorkers: number;
  /** Workers that are ready and have nothing to do. */
  readonly idleWorkers: number;
  /** Workers that are ready and at work. */
  readonly busyWorkers: number;
  readonly startingWorkers: number;
  readonly waitingTasks: number;
}

/**
 * Number of workers to start now: one for each waiting task without a starting one, spares, and the
 * minimum.
 */
export function workersToStart(load: Load): number {
  const present = load.idleWorkers + load.busyWorkers + load.startingWorkers;
  const coming = load.idleWorkers + load.startingWorkers;
  const wanted =
    Math.max(load.waitingTasks, load.busyWorkers > 0 ? load.minSpareWorkers : 0) - coming;
  const lacking = Math.max(wanted, load.workersAtOnce - present);
  return Math.max(0, Math.min(lacking, load.maxWorkers - present));
}

/** Number of idle workers that may leave when they have been idle long enough. */
export function workersToStop(load: Load): number {
  const present = load.idleWorkers + load.busyWorkers + load.startingWorkers;
  const spare = load.idleWorkers - Math.max(load.minSpareWorkers, load.maxSpareWorkers);
  return Math.max(0, Math.min(spare, present - load.minWorkers));
}
