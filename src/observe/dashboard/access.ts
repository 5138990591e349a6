// Access to the dashboard, by token (token.ts). A browser sends the token once in the address and gets a
// cookie; tools send it as a header. Browsers send cookies to every port of this machine, so the cookie is
// not the token, does not reveal it, and is limited to a secret path. A foreign page whose name resolves to
// this machine is detected by the Host header (host-names.ts).

import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { hostname } from 'node:os';
import { isLoopback, isOurHost } from '../host-names.js';

/** One year: a bookmark works while the token stays the same. */
const cookieSeconds = 365 * 24 * 60 * 60;

/** `misdirected`: a foreign Host header. `enters`: the token is in the address. */
export type Verdict = 'misdirected' | 'refused' | 'enters' | 'granted';

export class Access {
  readonly #token: string;
  readonly #names: readonly string[];
  readonly #cookie: string;
  readonly #secret: string;
  /** Path of the page for browsers with the cookie; starts and ends with a slash. */
  readonly place: string;

  /** `host`: the address to listen on. `port`: part of the cookie's name, because all ports share cookies. */
  constructor(token: string, { host, port }: { readonly host: string; readonly port: number }) {
    this.#token = token;
    // On loopback the name of the machine is not needed.
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

  /** Cookie for a browser that enters. Scripts cannot read it, and pages of other sites cannot send it. */
  get setCookie(): string {
    const limits = `Path=${this.place}; Max-Age=${cookieSeconds}; HttpOnly; SameSite=Lax`;
    return `${this.#cookie}=${this.#secret}; ${limits}`;
  }
}

/** Compares in constant time. */
function isSame(given: string, wanted: string): boolean {
  return timingSafeEqual(digest(given), digest(wanted));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Derives a secret that reveals neither the token nor another derived secret. */
function derived(token: string, purpose: string): string {
  return createHmac('sha256', token).update(purpose).digest('base64url');
}
