// Tries the namespaces of bubblewrap: a kernel may refuse them to this user, and a container may. Not here: the other
// layers (layers.ts).

import { spawnSync } from 'node:child_process';
import { ownOf } from '../../lib/index.js';
import { textOf } from '../../proc/index.js';

/** The bubblewrap with which they work: that is tried once. */
let known: string | undefined;

/** Returns the reason why this user can make no namespaces, with the way out; `undefined`: they work. */
export function namespacesProblem(bubblewrap: string): string | undefined {
  if (bubblewrap === known) return undefined;
  const words = ['--unshare-all', '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev'];
  const { status, stderr, error } = spawnSync(
    bubblewrap,
    [...words, '--', process.execPath, '--version'],
    ownOf({ encoding: 'utf8', timeout: 10_000 }),
  );
  if (status !== 0) {
    const why = error?.message ?? String(stderr).trim();
    return `this user may make no namespaces (${why}): ${wayToNamespaces(settingOf, bubblewrap)}`;
  }
  known = bubblewrap;
  return undefined;
}

/** Settings of the kernel that refuse namespaces to users. */
const settings = [
  { name: 'user.max_user_namespaces', refuses: '0', allows: '10000' },
  // Debian, before version 11 by default.
  { name: 'kernel.unprivileged_userns_clone', refuses: '0', allows: '1' },
  // Ubuntu, since 24.04 by default.
  { name: 'kernel.apparmor_restrict_unprivileged_userns', refuses: '1', allows: '0' },
] as const;

/** Returns what gives the right to namespaces, in words. `valueOf`: the value of a setting; empty: there is none. */
export function wayToNamespaces(valueOf: (setting: string) => string, bubblewrap: string): string {
  const found = settings.find(({ name, refuses }) => valueOf(name) === refuses);
  if (found === undefined) {
    return 'in a container, --security-opt seccomp=unconfined, apparmor=unconfined and systempaths=unconfined allow them';
  }
  const { name, allows } = found;
  const command = `sysctl ${name}=${allows} allows them`;
  return name.includes('apparmor')
    ? `an AppArmor profile of ${bubblewrap} with "userns", or ${command}`
    : command;
}

function settingOf(name: string): string {
  return textOf(`/proc/sys/${name.replaceAll('.', '/')}`).trim();
}
