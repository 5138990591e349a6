// User and group by name, from passwd(5) and group(5).

import { readFileSync } from 'node:fs';
import { invalid } from '../../lib/index.js';

export interface Owner {
  readonly uid: number | undefined;
  readonly gid: number | undefined;
}

/** Returns `undefined` when neither is given. Throws `OPTION_INVALID`. */
export function ownerOf(
  user: string | number | undefined,
  group: string | number | undefined,
): Owner | undefined {
  if (user === undefined && group === undefined) return undefined;
  const gid = group === undefined ? undefined : find('/etc/group', 'group', group).id;
  if (user === undefined) return { uid: undefined, gid };
  const entry = find('/etc/passwd', 'user', user);
  if (gid === undefined && entry.gid === undefined) {
    throw invalid('user', user, 'a user in /etc/passwd; give the group, too, for another id');
  }
  return { uid: entry.id, gid: gid ?? entry.gid };
}

/** The third field is the id in both files; a user's fourth field is the group id. An id needs no line. */
function find(
  file: string,
  name: string,
  wanted: string | number,
): { id: number; gid: number | undefined } {
  const lines = readFileSync(file, 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const isNumber = /^\d+$/.test(String(wanted));
  const line = lines.find((fields) => fields[isNumber ? 2 : 0] === String(wanted));
  if (line !== undefined) return { id: Number(line[2]), gid: Number(line[3]) };
  if (isNumber) return { id: Number(wanted), gid: undefined };
  throw invalid(name, wanted, `a name or an id in ${file}`);
}
