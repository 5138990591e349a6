import { totalmem } from 'node:os';

/** Returns the memory that this process may count on, in MiB: that of the machine, or of its control group. */
export function machineMemoryMb(): number {
  // A control group without a limit has a number larger than any memory.
  const granted = process.constrainedMemory() ?? 0;
  return (granted > 0 ? Math.min(granted, totalmem()) : totalmem()) / 2 ** 20;
}
