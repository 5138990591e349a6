// By which name a request has come. A page of somebody else's whose name leads here (DNS rebinding) is told
// apart by it: names can be bound anew to another machine, addresses cannot.

import { isIP } from 'node:net';

/** Whether nobody but this machine reaches it. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** `header`: the one called Host. `names`: in lower case; any address is one of ours, and so is `localhost`. */
export function isOurHost(header: string | undefined, names: readonly string[]): boolean {
  const name = /^(\[[^\]]*\]|[^:]*)(:\d+)?$/.exec(header ?? '')?.[1] ?? '';
  const bare = name.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  return bare === 'localhost' || names.includes(bare) || isIP(bare) !== 0;
}
