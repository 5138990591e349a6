// Checks the name in the Host header of a request. It exposes a foreign page whose name resolves to this
// machine (DNS rebinding): a name can be bound to another machine at any time, an address cannot.

import { isIP } from 'node:net';

/** True: only this machine can connect to `host`. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** True: the Host header is one of `names` (in lower case), `localhost` or any IP address. */
export function isOurHost(header: string | undefined, names: readonly string[]): boolean {
  const name = /^(\[[^\]]*\]|[^:]*)(:\d+)?$/.exec(header ?? '')?.[1] ?? '';
  const bare = name.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  return bare === 'localhost' || names.includes(bare) || isIP(bare) !== 0;
}
