// How many hosts a pool should have. Pure: the pool starts and stops them.

export interface Load {
  readonly minHosts: number;
  /** Hosts that are to be there though nothing waits. */
  readonly hostsAtOnce: number;
  readonly maxHosts: number;
  readonly minSpareHosts: number;
  readonly maxSpareHosts: number;
  /** Hosts that are ready and have nothing to do. */
  readonly idleHosts: number;
  /** Hosts that are ready and at work. */
  readonly busyHosts: number;
  readonly startingHosts: number;
  readonly waitingTasks: number;
}

/** Hosts to start now: one for each waiting task without one on its way, the spare ones, and those always there. */
export function hostsToStart(load: Load): number {
  const present = load.idleHosts + load.busyHosts + load.startingHosts;
  const coming = load.idleHosts + load.startingHosts;
  const wanted = Math.max(load.waitingTasks, load.busyHosts > 0 ? load.minSpareHosts : 0) - coming;
  const lacking = Math.max(wanted, load.hostsAtOnce - present);
  return Math.max(0, Math.min(lacking, load.maxHosts - present));
}

/** Idle hosts that may leave when they have been idle long enough. */
export function hostsToStop(load: Load): number {
  const present = load.idleHosts + load.busyHosts + load.startingHosts;
  const spare = load.idleHosts - Math.max(load.minSpareHosts, load.maxSpareHosts);
  return Math.max(0, Math.min(spare, present - load.minHosts));
}
