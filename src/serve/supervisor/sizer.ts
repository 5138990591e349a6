// Computes the number of processes of a server, or of loops in each: applies the plan (plan.ts) to the
// utilization of the loops (utilization.ts). The supervisor starts and ends them.

import type { FilledServeOptions, Range } from '../options.js';
import type { Row } from '../shared/board.js';
import { isFull } from './blocked-loops.js';
import { Elastic, type PlanLimits, type PlanLoad, spareUnits } from './plan.js';
import type { ServerProcess } from './server-process.js';
import { Utilization } from './utilization.js';

/** A longer accept queue counts as overload (uWSGI's busyness-backlog-alert). */
const maxWaiting = 33;
/** Pause after a loop that could not be added, in ms. */
const failedRestMs = 30_000;

interface LoopsOfProcess {
  readonly elastic: Elastic;
  count: number;
  restUntilMs: number;
}

export class Sizer {
  readonly utilization = new Utilization();
  #options: FilledServeOptions;
  readonly #processes: Elastic;
  /** State of processes with a varying number of loops; `count` is the requested number. */
  readonly #loops = new WeakMap<ServerProcess, LoopsOfProcess>();

  constructor(options: FilledServeOptions) {
    this.#options = options;
    this.#processes = new Elastic(this.#limitsOf(options.processes));
  }

  /** Takes other options, but for the range of processes. */
  renew(options: FilledServeOptions): void {
    this.#options = options;
    this.processes = this.processes;
  }

  #limitsOf({ min, max }: Range): PlanLimits {
    const { minSpare, maxSpare } = this.#options;
    return { min, max, minSpare, maxSpare };
  }

  get processes(): Range {
    const { min, max } = this.#processes.limits;
    return { min, max };
  }

  set processes(range: Range) {
    this.#processes.limits = this.#limitsOf(range);
  }

  get maxProcesses(): number {
    return this.#processes.limits.max;
  }

  /**
   * Processes to start when positive, to end when negative, for `units` processes with these rows and accept
   * queues of `waitingConnections` in all.
   */
  changeOfProcesses(units: number, rows: readonly Row[], waitingConnections: number): number {
    const busy = this.utilization.sum(rows) / this.#options.loops.max;
    const load = this.#loadOf(units, busy, rows);
    const hasBacklog = load.hasBacklog || waitingConnections > maxWaiting;
    return this.#processes.step({ ...load, hasBacklog });
  }

  /** New number of loops of a process; `undefined`: no change. */
  loopsFor(process: ServerProcess, rows: readonly Row[]): number | undefined {
    const { loops } = this.#options;
    const size = this.#loops.get(process) ?? {
      elastic: new Elastic(this.#limitsOf(loops)),
      count: loops.min,
      restUntilMs: 0,
    };
    this.#loops.set(process, size);
    if (performance.now() < size.restUntilMs) return undefined;
    const change = size.elastic.step(this.#loadOf(size.count, this.utilization.sum(rows), rows));
    size.count += change;
    return change === 0 ? undefined : size.count;
  }

  /** Notes that a loop could not be added; the next try is delayed. */
  loopFailed(process: ServerProcess): void {
    const size = this.#loops.get(process);
    if (size === undefined) return;
    size.count -= 1;
    size.restUntilMs = performance.now() + failedRestMs;
  }

  #loadOf(units: number, busy: number, rows: readonly Row[]): PlanLoad {
    const hasBacklog = isFull(rows) || this.utilization.isSaturated(rows);
    return { units, spare: spareUnits(units, busy), hasBacklog };
  }
}
