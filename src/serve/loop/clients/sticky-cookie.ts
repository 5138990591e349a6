// The cookie that keeps a client at this loop (`sticky: { cookie }`): set with the answer to a request that has none,
// or one of a loop that has ended. The router reads it from the next connection's first request.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { nodeHttp } from '../../../lib/index.js';
import { rowOfStickyId } from '../../self.js';

export interface StickyCookie {
  readonly name: string;
  /** Makes a value that leads to this loop. */
  readonly makeId: () => string;
  /** True: the loop of this row takes connections. */
  readonly isLive: (row: number) => boolean;
}

/** Makes `server` set the cookie. Clients of a server with TLS are known by their address: it sets none. */
export function setStickyCookie(server: unknown, cookie: StickyCookie): void {
  if (!(server instanceof nodeHttp().Server)) return;
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    const row = rowOfStickyId(cookieOf(request, cookie.name));
    if (row !== undefined && cookie.isLive(row)) return;
    addCookie(response, `${cookie.name}=${cookie.makeId()}; Path=/; HttpOnly`);
  });
}

function cookieOf({ headers }: IncomingMessage, name: string): string {
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim());
  const found = pairs.find((pair) => pair.startsWith(`${name}=`)) ?? '';
  return found.slice(name.length + 1);
}

/** Adds a cookie to those that the program sets until it writes the head. */
function addCookie(response: ServerResponse, cookie: string): void {
  const { writeHead } = response;
  Reflect.set(response, 'writeHead', (...given: unknown[]): unknown => {
    Reflect.set(response, 'writeHead', writeHead);
    const last = given.at(-1);
    const headers = typeof last === 'object' && last !== null ? last : undefined;
    const name = 'Set-Cookie';
    if (Array.isArray(headers)) {
      const pair = Array.isArray(headers[0]) ? [[name, cookie]] : [name, cookie];
      given[given.length - 1] = [...headers, ...pair];
    } else if (headers !== undefined && hasCookie(headers)) {
      given[given.length - 1] = withCookie(headers, cookie);
    } else response.appendHeader(name, cookie);
    return Reflect.apply(writeHead, response, given);
  });
}

const isCookieName = (name: string): boolean => name.toLowerCase() === 'set-cookie';

function hasCookie(headers: object): boolean {
  return Object.keys(headers).some(isCookieName);
}

function withCookie(headers: object, cookie: string): object {
  const entries = Object.entries(headers).map(([name, value]) => [
    name,
    isCookieName(name) ? [value, cookie].flat() : value,
  ]);
  return Object.fromEntries(entries);
}
