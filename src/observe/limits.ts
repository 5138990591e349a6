// From where on a figure is one to look at, in the terminal and on the page.

export type Concern = '' | 'warning' | 'alarm';

const busyShare = 0.7;
const overloadedShare = 0.9;
const lateMs = 50;
const tooLateMs = 200;
/** A loop without a sign of life for less has a long callback. */
const blockedMs = 1000;

/** Of an event loop's utilization. */
export function busyConcern(share: number | undefined): Concern {
  if (share === undefined || share < busyShare) return '';
  return share < overloadedShare ? 'warning' : 'alarm';
}

export function lagConcern(ms: number | undefined): Concern {
  if (ms === undefined || ms < lateMs) return '';
  return ms < tooLateMs ? 'warning' : 'alarm';
}

/** `silentMs`: without a sign of life. */
export function isBlockedFor(silentMs: number): boolean {
  return silentMs >= blockedMs;
}
