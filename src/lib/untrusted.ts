// Limits for values from a peer that is not trusted.

const freeBytes = 128 * 2 ** 20;
const memoryPerByte = 4;

/** Memory that a value of so many bytes may take once it is read: forged bytes could take fifty times their size. */
export function memoryLimit(sizeBytes: number): number {
  return freeBytes + sizeBytes * memoryPerByte;
}
