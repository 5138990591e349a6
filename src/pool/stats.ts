// What `pool.stats()` returns.

import type { ChannelKind } from '../channels/index.js';
import type { GrantedCores, HostKind } from '../host/index.js';
import type { HistogramSummary } from './histogram.js';

export interface HostStats {
  readonly id: number;
  readonly kind: HostKind;
  readonly pid: number | undefined;
  readonly state: 'starting' | 'ready' | 'retiring' | 'closing' | 'ended';
  readonly tasksInFlight: number;
  readonly tasksDone: number;
}

export interface PoolStats {
  readonly channel: ChannelKind;
  /** Cores granted to this process and how many of them hosts of all pools use now. */
  readonly cores: GrantedCores & { readonly used: number };
  readonly hosts: readonly HostStats[];
  readonly startedHosts: number;
  readonly exitedHosts: number;
  readonly waitingTasks: number;
  /** In a host and not answered yet, those included that wait there. */
  readonly runningTasks: number;
  readonly completedTasks: number;
  readonly failedTasks: number;
  /** From the call to the hand-over. */
  readonly waited: HistogramSummary;
  /** In the host. */
  readonly ran: HistogramSummary;
}
