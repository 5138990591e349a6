// What other parts say of this thread, and its agent goes by.

/** Servers that may listen in a thread whose program may not: they are not the program's. */
export const agentServers = new WeakSet<object>();

let isForBlocking = false;

/** This is the thread of a unit that may block it. */
export function markAsBlocking(): void {
  isForBlocking = true;
}

export function mayBlock(): boolean {
  return isForBlocking;
}
