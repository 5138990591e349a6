// Addresses that manycore makes up, and programs may not use.

export const reservedPrefix = 'manycore:';
/** Of the ends of streams, which alone may lie on other machines. */
export const streamPrefix = `${reservedPrefix}stream:`;

export function isReserved(address: string): boolean {
  return address.startsWith(reservedPrefix);
}
