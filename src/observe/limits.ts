// Limits above which a value is highlighted, in the terminal and on the page.

export type Concern = '' | 'warning' | 'alarm';

const busyShare = 0.7;
const overloadedShare = 0.9;
const lateMs = 50;
const tooLateMs = 200;
/** A loop without a heartbeat for less than this is in a long callback. */
const blockedMs = 1000;

/** `share`: the utilization of an event loop. */
export function busyConcern(share: number | undefined): Concern {
  if (share === undefined || share < busyShare) return '';
  return share < overloadedShare ? 'warning' : 'alarm';
}

export function lagConcern(ms: number | undefined): Concern {
  if (ms === undefined || ms < lateMs) return '';
  return ms < tooLateMs ? 'warning' : 'alarm';
}

/** `silentMs`: time since the last heartbeat of the loop. */
export function isBlockedFor(silentMs: number): boolean {
  return silentMs >= blockedMs;
}
