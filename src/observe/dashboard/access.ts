// Who may see the dashboard: who has the token (token.ts). It comes in the address once; tools send it as a
// header. A browser gets a cookie for it, and sends that to every server on this machine, whatever its port
// is: so the cookie is not the token, cannot be turned into it, and goes to one path that nobody can guess.
// A page of somebody else's whose name leads here is told apart by the name that it asks for (host-names.ts).

import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { hostname } from 'node:os';
import { isLoopback, isOurHost } from '../host-names.js';

/** A year: a bookmark works as long as the token stays the same. */
const cookieSeconds = 365 * 24 * 60 * 60;

/** `misdirected`: for a name that is not ours. `enters`: with the token in the address. */
export type Verdict = 'misdirected' | 'refused' | 'enters' | 'granted';

export class Access {
  readonly #token: string;
  readonly #names: readonly string[];
  readonly #cookie: string;
  readonly #secret: string;
  /** Where the page is for who has the cookie: it starts and ends with a slash. */
  readonly place: string;

  /** `host`: that it was told to listen on. Cookies of all ports are one: `port` tells them apart. */
  constructor(token: string, { host, port }: { readonly host: string; readonly port: number }) {
    this.#token = token;
    // Where only this machine comes in, nobody needs its name.
    const names = isLoopback(host) ? [host] : [host, hostname()];
    this.#names = names.map((name) => name.toLowerCase());
    this.#cookie = `manycore-${port}`;
    this.#secret = derived(token, `cookie ${port}`);
    this.place = `/${derived(token, `path ${port}`)}/`;
  }

  judge(request: IncomingMessage, query: URLSearchParams): Verdict {
    if (!isOurHost(request.headers.host, this.#names)) return 'misdirected';
    const given = query.get('token');
    if (given !== null) return isSame(given, this.#token) ? 'enters' : 'refused';
    const { cookie = '', authorization = '' } = request.headers;
    const inCookie = cookie
      .split(/; */)
      .find((each) => each.startsWith(`${this.#cookie}=`))
      ?.slice(this.#cookie.length + 1);
    const inHeader = authorization.replace(/^Bearer /, '');
    const isGranted =
      inCookie === undefined ? isSame(inHeader, this.#token) : isSame(inCookie, this.#secret);
    return isGranted ? 'granted' : 'refused';
  }

  /** For who enters. No script sees it, and no other site's page sends it. */
  get setCookie(): string {
    const limits = `Path=${this.place}; Max-Age=${cookieSeconds}; HttpOnly; SameSite=Lax`;
    return `${this.#cookie}=${this.#secret}; ${limits}`;
  }
}

/** In the same time, whatever was given. */
function isSame(given: string, wanted: string): boolean {
  return timingSafeEqual(digest(given), digest(wanted));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Nobody gets from it to the token, or to another of these. */
function derived(token: string, purpose: string): string {
  return createHmac('sha256', token).update(purpose).digest('base64url');
}
