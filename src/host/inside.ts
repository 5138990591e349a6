// The mark by which code finds that it runs inside a host. The host's entry says so before it runs anything of the user. The
// library imported by a task is mostly the same copy. Another one (two versions in a program) finds the
// host on the global object, where it must be read by any version: names and types there stay.

import { defineOwn } from '../internal/index.js';

/** Services of the copy of manycore that runs a host, for other copies in it. */
export interface HostFacade {
  /** The number that its starter gave it. */
  readonly number: number;
  /** Returns the signal of the task that calls this. */
  taskSignal(): AbortSignal | undefined;
  /** Sends a value to the caller of the task that calls this. */
  report(value: unknown): Promise<void>;
}

const name = Symbol.for('manycore.host');
let own: HostFacade | undefined;

export function markAsHost(facade: HostFacade): void {
  own = facade;
  defineOwn(globalThis, name, { value: facade });
}

/** The host that runs this by another copy of manycore. */
export function hostOfOtherCopy(): HostFacade | undefined {
  if (own !== undefined) return undefined;
  const found: unknown = Reflect.get(globalThis, name);
  return isFacade(found) ? found : undefined;
}

function isFacade(value: unknown): value is HostFacade {
  return typeof value === 'object' && value !== null && 'taskSignal' in value && 'report' in value;
}

/** `undefined` where this is no host. */
export function hostNumber(): number | undefined {
  return (own ?? hostOfOtherCopy())?.number;
}

export function isInsideHost(): boolean {
  return own !== undefined || hostOfOtherCopy() !== undefined;
}
