// How many cores this process may really use: what the scheduler's affinity and the control group's
// quota grant (native), else what Node says, which before Node 22 does not see quotas.

import { availableParallelism } from 'node:os';
import { nativeBinding } from '../native.js';

export interface GrantedCores {
  /** At least 1. */
  readonly count: number;
  /** Where the number comes from, for people. */
  readonly reason: string;
}

let granted: GrantedCores | undefined;

/** The cores granted to this process; measured once. */
export function grantedCores(): GrantedCores {
  granted ??= nativeBinding()?.grantedCores() ?? {
    count: availableParallelism(),
    reason: 'os.availableParallelism(), which may not see a quota: the native binary is not loaded',
  };
  return granted;
}
