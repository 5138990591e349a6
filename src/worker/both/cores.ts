// The cores that this process may really use: granted by the scheduler's affinity and the control group's
// quota (native), else as Node counts them, which before Node 22 does not see quotas. Number and ids.

import { availableParallelism } from 'node:os';
import { CodedError } from '../../errors.js';
import { callNative, nativeBinding, nativeProblem } from '../../native.js';

export interface GrantedCores {
  /** At least 1. */
  readonly count: number;
  /** Source of the number, for people. */
  readonly reason: string;
}

let granted: GrantedCores | undefined;

/** Returns the cores granted to this process, or the share in `MANYCORE_CORES`; measured once. */
export function grantedCores(): GrantedCores {
  granted ??= shareOfCores() ??
    nativeBinding()?.grantedCores() ?? {
      count: availableParallelism(),
      reason:
        'os.availableParallelism(), which may not see a quota: the native binary is not loaded',
    };
  return granted;
}

/**
 * Share that a server sets for each of its event loops, so that not every loop has workers for all cores.
 */
function shareOfCores(): GrantedCores | undefined {
  const count = Number(process.env['MANYCORE_CORES'] ?? '');
  if (!Number.isInteger(count) || count < 1) return undefined;
  return { count, reason: `MANYCORE_CORES=${count}` };
}

/** Returns the numbers of the cores that this thread may run on now, ascending; empty when unknown. */
export function allowedCores(): number[] {
  return nativeBinding()?.allowedCores() ?? [];
}

/**
 * Pins this thread, and what it starts from now on, to `cores`. Throws `NATIVE_MISSING`, and
 * `OPTION_INVALID` for cores that this process may not use.
 */
export function keepTo(cores: readonly number[]): void {
  const binding = nativeBinding();
  if (binding === undefined) {
    const why = nativeProblem()?.message ?? 'the native binary is missing';
    throw new CodedError('NATIVE_MISSING', `affinity cannot be applied: ${why}`);
  }
  const allowed = binding.allowedCores();
  const others = cores.filter((core) => !allowed.includes(core));
  if (others.length > 0) {
    const message = `affinity names ${coresText(others)}, and this process may use ${coresText(allowed)}: take it out of the configuration, or tune on this machine`;
    throw new CodedError('OPTION_INVALID', message);
  }
  callNative(() => binding.pinThread(cores));
}

/**
 * Calls `start`, whose child processes may run on `cores` alone; `undefined`: on all cores of this process.
 */
export function startOn<T>(cores: readonly number[] | undefined, start: () => T): T {
  if (cores === undefined) return start();
  const before = allowedCores();
  keepTo(cores);
  try {
    return start();
  } finally {
    callNative(() => nativeBinding()?.pinThread(before));
  }
}

function coresText(cores: readonly number[]): string {
  return `${cores.length === 1 ? 'core' : 'cores'} ${cores.join(', ')}`;
}

/**
 * Returns the core for one more worker: the one with the fewest workers. `taken` has a core for each
 * worker.
 */
export function coresToPin(taken: readonly number[], allowed: readonly number[]): number[] {
  const workersOn = (core: number): number => taken.filter((each) => each === core).length;
  const fewest = Math.min(...allowed.map(workersOn));
  return allowed.filter((core) => workersOn(core) === fewest).slice(0, 1);
}
