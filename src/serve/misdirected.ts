// Requests for a name that is not this app's, over a connection that began with one that is: browsers and
// proxies use a connection for several names where address or certificate are the same. They hear 421,
// and ask over another connection (RFC 9110, section 15.5.20).

import { constants } from 'node:http2';
import { Server as NetServer } from 'node:net';
import { Duplex } from 'node:stream';
import { nodeHttp } from '../internal/index.js';

const misdirected = constants.HTTP_STATUS_MISDIRECTED_REQUEST;
const answer = `HTTP/1.1 ${misdirected} Misdirected Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`;

/** Whether a client that asks for `host`, a name with or without a port, means one of `names`. */
export function isAskedFor(names: readonly string[], host: string | undefined): boolean {
  const name = (host ?? '').trim().replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase();
  return names.some((own) =>
    own.startsWith('*') ? name.length >= own.length && name.endsWith(own.slice(1)) : name === own,
  );
}

/** From now on `server`, when it serves HTTP, hears only of requests for `names`. */
export function refuseMisdirected(server: unknown, names: readonly string[]): void {
  if (!(server instanceof NetServer)) return;
  const emit = server.emit;
  server.emit = function (this: NetServer, event: string, ...given: unknown[]): boolean {
    return refuse(names, event, given) || Reflect.apply(emit, this, [event, ...given]);
  };
}

/** Answers what an event brings, when that is a request for somebody else. */
function refuse(names: readonly string[], event: string, given: unknown[]): boolean {
  const [first, second] = given;
  if (event === 'stream' && first instanceof Duplex) {
    const { ':authority': authority, host }: Record<string, string | undefined> = Object(second);
    if (isAskedFor(names, authority ?? host)) return false;
    const respond: unknown = Reflect.get(first, 'respond');
    if (typeof respond !== 'function') return false;
    Reflect.apply(respond, first, [{ ':status': misdirected }, { endStream: true }]);
    return true;
  }
  if (!(first instanceof nodeHttp().IncomingMessage) || isAskedFor(names, first.headers.host))
    return false;
  if (second instanceof nodeHttp().ServerResponse) {
    second.writeHead(misdirected, { Connection: 'close' }).end();
  } else if (second instanceof Duplex) {
    // An upgrade. Behind an answer that is still to come there is no place for another.
    const isFirst = Reflect.get(second, '_httpMessage') === null;
    if (isFirst) second.end(answer);
    else second.destroy();
  }
  return true;
}
