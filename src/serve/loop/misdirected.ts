// Requests for a name of another app, over a connection that began with a name of this one: browsers and
// proxies use a connection for several names when address or certificate are the same. They get 421, and
// retry over another connection (RFC 9110, section 15.5.20).

import { constants } from 'node:http2';
import { Server as NetServer } from 'node:net';
import { Duplex } from 'node:stream';
import { nodeHttp } from '../../lib/index.js';

const misdirected = constants.HTTP_STATUS_MISDIRECTED_REQUEST;
const answer = `HTTP/1.1 ${misdirected} Misdirected Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`;

/** True: `host`, a name with or without a port, matches one of `names`. */
export function matchesName(names: readonly string[], host: string | undefined): boolean {
  const name = (host ?? '').trim().replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase();
  return names.some((own) =>
    own.startsWith('*') ? name.length >= own.length && name.endsWith(own.slice(1)) : name === own,
  );
}

/** Makes `server`, when it serves HTTP, receive only requests for `names`. */
export function refuseMisdirected(server: unknown, names: readonly string[]): void {
  if (!(server instanceof NetServer)) return;
  const emit = server.emit;
  server.emit = function (this: NetServer, event: string, ...given: unknown[]): boolean {
    return refuse(names, event, given) || Reflect.apply(emit, this, [event, ...given]);
  };
}

/** Answers an event's request with 421 when it is for another app; returns false otherwise. */
function refuse(names: readonly string[], event: string, given: unknown[]): boolean {
  const [first, second] = given;
  if (event === 'stream' && first instanceof Duplex) {
    const { ':authority': authority, host }: Record<string, string | undefined> = Object(second);
    if (matchesName(names, authority ?? host)) return false;
    const respond: unknown = Reflect.get(first, 'respond');
    if (typeof respond !== 'function') return false;
    Reflect.apply(respond, first, [{ ':status': misdirected }, { endStream: true }]);
    return true;
  }
  if (!(first instanceof nodeHttp().IncomingMessage) || matchesName(names, first.headers.host))
    return false;
  if (second instanceof nodeHttp().ServerResponse) {
    second.writeHead(misdirected, { Connection: 'close' }).end();
  } else if (second instanceof Duplex) {
    // An upgrade. While an earlier answer is pending, no other one can be sent.
    const isFirst = Reflect.get(second, '_httpMessage') === null;
    if (isFirst) second.end(answer);
    else second.destroy();
  }
  return true;
}
