// The replacement of a running server by another process: `USR2` and `manycore upgrade`.

import { Head } from './head.js';
import { successorVariable } from './protocol.js';
import type { Role } from './role.js';
import { Successor } from './successor.js';

export { OwnServers } from './own-servers.js';
export type { Role } from './role.js';

/** Returns the role of this process; before anything of its environment changes. */
export function roleOfProcess(): Role {
  const isSuccessor = process.env[successorVariable] !== undefined && process.send !== undefined;
  delete process.env[successorVariable]; // not for programs
  return isSuccessor ? new Successor() : new Head();
}
