// Text about a failed `listen()`, for people.

import { getSystemErrorName } from 'node:util';
import type { ListenAnswer, ListenQuery } from '../protocol.js';

export interface ListenProblem {
  /** The system's code, as `EADDRINUSE`. */
  readonly code: string;
  readonly text: string;
}

const waysOut: Readonly<Record<string, string>> = {
  EADDRINUSE: '; choose another, or end what has it',
  EACCES: '; choose one that this user may have',
  EADDRNOTAVAIL: '; choose an address of this machine',
};

/** Describes a query that the system has answered by an error. */
export function listenProblem(
  { address, port }: ListenQuery,
  { errno, reason }: Extract<ListenAnswer, { errno: number }>,
): ListenProblem {
  const code = getSystemErrorName(errno);
  const where = port < 0 ? address : address === null ? `port ${port}` : `${address} port ${port}`;
  const because = reason === undefined ? '' : `: ${reason}`;
  return { code, text: `${code} for ${where}${because}${waysOut[code] ?? ''}` };
}
