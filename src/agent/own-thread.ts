// Facts about this thread that other parts set and its agent reads.

/** Servers of manycore, which may listen in a thread whose program may not. */
export const ownServers = new WeakSet<object>();

let isForBlocking = false;

/** Marks this thread as that of a unit that may block it. */
export function markAsBlocking(): void {
  isForBlocking = true;
}

export function mayBlock(): boolean {
  return isForBlocking;
}
