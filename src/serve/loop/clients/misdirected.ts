// Requests for a name of another app, over a connection that began with a name of this one: browsers and
// proxies use a connection for several names when address or certificate are the same. They get 421, and
// retry over another connection (RFC 9110, section 15.5.20). A request that names its host in two ways gets 400.

import type { IncomingMessage } from 'node:http';
import { constants } from 'node:http2';
import { Server as NetServer } from 'node:net';
import { Duplex } from 'node:stream';
import { targetOf } from '../../../http-apps/index.js';
import { nodeHttp } from '../../../lib/index.js';

const misdirected = constants.HTTP_STATUS_MISDIRECTED_REQUEST;
const badRequest = constants.HTTP_STATUS_BAD_REQUEST;

/** True: `host`, a name with or without a port, matches one of `names`. */
export function matchesName(names: readonly string[], host: string | undefined): boolean {
  const name = (host ?? '').replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase();
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

/**
 * Returns the status with which a request is refused, or `undefined`. The host of its target counts over the one
 * `Host` that it may have (RFC 9112, 3.2): the router reads both in the same way (server_name.rs).
 */
function refusalOf(names: readonly string[], request: IncomingMessage): number | undefined {
  const { url = '/', rawHeaders, headers } = request;
  const target = targetOf(url);
  const isHost = (name: string, at: number): boolean => at % 2 === 0 && /^host$/i.test(name);
  if (target === undefined || rawHeaders.filter(isHost).length > 1) return badRequest;
  return matchesName(names, target.authority ?? headers.host) ? undefined : misdirected;
}

/** Answers an event's request with 421 when it is for another app, with 400 when it names two; else returns false. */
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
  if (!(first instanceof nodeHttp().IncomingMessage)) return false;
  const status = refusalOf(names, first);
  if (status === undefined) return false;
  if (second instanceof nodeHttp().ServerResponse) {
    second.writeHead(status, { Connection: 'close' }).end();
  } else if (second instanceof Duplex) {
    // An upgrade. While an earlier answer is pending, no other one can be sent.
    const isFirst = Reflect.get(second, '_httpMessage') === null;
    if (isFirst) second.end(answerWith(status));
    else second.destroy();
  }
  return true;
}

function answerWith(status: number): string {
  const reason = nodeHttp().STATUS_CODES[status];
  return `HTTP/1.1 ${status} ${reason}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`;
}
