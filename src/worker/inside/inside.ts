// The mark of a worker: its entry sets it before it runs any code of the user. The library imported by a
// task is mostly the same copy. Another copy (two versions in a program) finds the worker on the global
// object, which must be readable by any version: names and types there stay.

import { defineOwn } from '../../lib/index.js';

/** Services of the copy of manycore that runs a worker, for other copies in it. */
export interface WorkerFacade {
  /** The number that its starter gave it. */
  readonly number: number;
  /** Returns the signal of the task that calls this. */
  taskSignal(): AbortSignal | undefined;
  /** Sends a value to the caller of the task that calls this. */
  report(value: unknown): Promise<void>;
  /** The same, and resolves with the answer of the caller. Only in a partition. */
  ask?(value: unknown): Promise<unknown>;
}

const name = Symbol.for('manycore.worker');
let own: WorkerFacade | undefined;

export function markAsWorker(facade: WorkerFacade): void {
  own = facade;
  defineOwn(globalThis, name, { value: facade });
}

/** Returns the worker that runs this code, if it belongs to another copy of manycore. */
export function workerOfOtherCopy(): WorkerFacade | undefined {
  if (own !== undefined) return undefined;
  const found: unknown = Reflect.get(globalThis, name);
  return isFacade(found) ? found : undefined;
}

function isFacade(value: unknown): value is WorkerFacade {
  return typeof value === 'object' && value !== null && 'taskSignal' in value && 'report' in value;
}

/** Returns the number of this worker; `undefined` outside of workers. */
export function workerNumber(): number | undefined {
  return (own ?? workerOfOtherCopy())?.number;
}

export function isInsideWorker(): boolean {
  return own !== undefined || workerOfOtherCopy() !== undefined;
}
