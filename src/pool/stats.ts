// What `pool.stats()` returns, and what an agent tells of a pool.

import type { ChannelKind } from '../channels/index.js';
import { type GrantedCores, grantedCores, type HostKind, type HostMemory } from '../host/index.js';
import { budget } from './budget.js';
import type { Dispatcher } from './dispatcher.js';
import type { TaskHost } from './fleet.js';
import type { HistogramSummary } from './histogram.js';
import type { PoolHealth } from './starts.js';

export interface HostStats {
  readonly id: number;
  readonly kind: HostKind;
  readonly pid: number | undefined;
  readonly state: 'starting' | 'ready' | 'retiring' | 'closing' | 'ended';
  readonly tasksInFlight: number;
  readonly tasksDone: number;
}

/** What an agent tells of a host: more than `stats()`, because the host was asked before. */
export interface HostFigures extends HostStats {
  /** As the host told last; `undefined` until then. */
  readonly memory: HostMemory | undefined;
}

/** What an agent tells of a pool. */
export interface PoolFigures extends PoolStats {
  readonly hosts: readonly HostFigures[];
}

export interface PoolStats {
  readonly channel: ChannelKind;
  /** Cores granted to this process and how many of them hosts of all pools use now. */
  readonly cores: GrantedCores & { readonly used: number };
  readonly hosts: readonly HostStats[];
  readonly startedHosts: number;
  readonly exitedHosts: number;
  /** Of those that exited: neither asked to leave nor ended by the pool, as after a timeout. */
  readonly lostHosts: number;
  /** Starts that had to wait, because a host did not start or ended before it had a task. */
  readonly restarts: number;
  /** Whether hosts start. */
  readonly health: PoolHealth;
  readonly waitingTasks: number;
  /** In a host and not answered yet, those included that wait there. */
  readonly runningTasks: number;
  readonly completedTasks: number;
  readonly failedTasks: number;
  /** Of frames and shared memory, to the hosts and from them, in bytes. */
  readonly sentBytes: number;
  readonly receivedBytes: number;
  /** From the call to the hand-over; since the last `resetTimes()`, as `ran`. */
  readonly waited: HistogramSummary;
  /** In the host. */
  readonly ran: HistogramSummary;
}

export function poolStats(channel: ChannelKind, dispatcher: Dispatcher): PoolStats {
  const { fleet, waited, ran } = dispatcher;
  return {
    channel,
    cores: { ...grantedCores(), used: budget().usedCores },
    hosts: fleet.hosts.map(hostStats),
    ...fleet.counts,
    restarts: fleet.restarts,
    health: fleet.health,
    waitingTasks: dispatcher.waitingTasks,
    runningTasks: dispatcher.runningTasks,
    completedTasks: dispatcher.completedTasks,
    failedTasks: dispatcher.failedTasks,
    sentBytes: fleet.bytes('sentBytes'),
    receivedBytes: fleet.bytes('receivedBytes'),
    waited: waited.summary(),
    ran: ran.summary(),
  };
}

export function poolFigures(channel: ChannelKind, dispatcher: Dispatcher): PoolFigures {
  const hosts = dispatcher.fleet.hosts.map((host): HostFigures => {
    return { ...hostStats(host), memory: host.memory };
  });
  const { waited, ran } = dispatcher;
  return { ...poolStats(channel, dispatcher), hosts, waited: waited.total(), ran: ran.total() };
}

function hostStats(host: TaskHost): HostStats {
  const { id, kind, pid, inFlight, tasksDone } = host;
  const state = host.isRetiring ? 'retiring' : host.state;
  const tasksInFlight = host.state === 'starting' ? 0 : inFlight;
  return { id, kind, pid, state, tasksInFlight, tasksDone };
}
