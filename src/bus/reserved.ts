// Addresses that manycore makes up, and programs may not use.

export const reservedPrefix = 'manycore:';
/** Prefix of stream ends, the only reserved addresses that may be on other machines. */
export const streamPrefix = `${reservedPrefix}stream:`;

export function isReserved(address: string): boolean {
  return address.startsWith(reservedPrefix);
}
