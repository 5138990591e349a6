// Units that are alone in a process, because they may have ended one with others in it. Two rules decide:
// a unit whose instances were the only ones in two lost processes, or two of its losses were shared with others;
// of several such units the one that was deployed last, one for each loss. Not here: processes, restarts.

import { intensityDefaults } from '../../lib/index.js';

/** Losses after which a unit is to be alone. */
const lossesToIsolate = 2;

export class Isolation {
  /** The process of each, by deployment; `undefined`: none yet. */
  readonly #processes = new Map<number, number | undefined>();
  /** Times of losses that each has shared with others, in ms, by deployment. */
  readonly #shared = new Map<number, number[]>();

  /** Notes a process that was lost with these deployments in it; returns one to isolate now. */
  noteShared(deployments: readonly number[], nowMs: number): number | undefined {
    for (const id of deployments) {
      const before = this.#shared.get(id) ?? [];
      const recent = before.filter((atMs) => nowMs - atMs < intensityDefaults.withinMs);
      this.#shared.set(id, [...recent, nowMs].slice(-lossesToIsolate));
    }
    return deployments
      .filter((id) => !this.has(id) && this.#shared.get(id)?.length === lossesToIsolate)
      .sort((a, b) => b - a)[0];
  }

  /** A deployment has ended a process alone: the others are cleared of suspicion. Returns whether to isolate it. */
  noteAlone(id: number, failures: number): boolean {
    this.#shared.clear();
    return !this.has(id) && failures >= lossesToIsolate;
  }

  add(id: number): void {
    this.#processes.set(id, undefined);
  }

  /** Returns whether it was isolated. */
  delete(id: number): boolean {
    this.#shared.delete(id);
    return this.#processes.delete(id);
  }

  has(id: number): boolean {
    return this.#processes.has(id);
  }

  /** Deployments without a process among these. */
  homeless(pids: ReadonlySet<number>): number[] {
    const isThere = (pid: number | undefined): boolean => pid !== undefined && pids.has(pid);
    return [...this.#processes].filter(([, pid]) => !isThere(pid)).map(([id]) => id);
  }

  setProcess(id: number, pid: number): void {
    this.#processes.set(id, pid);
  }

  processOf(id: number): number | undefined {
    return this.#processes.get(id);
  }

  /** True: the process belongs to one deployment alone. */
  isTaken(pid: number): boolean {
    return [...this.#processes.values()].includes(pid);
  }
}
