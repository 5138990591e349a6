// The option `sticky`: what keeps a client at one loop. Not here: the choice (crates/core/src/accept/sticky.rs), the
// cookie (loop/sticky-cookie.ts).

import { invalid, ownOptions } from '../lib/index.js';

/**
 * Part of a connection that keeps its client at one loop: the address of the client, or a value in the first request
 * of each connection.
 */
export type Sticky =
  | 'address'
  /** Name of a cookie, which the server sets by itself. */
  | { readonly cookie: string }
  /** Name of a header that clients, or a proxy before this server, send. */
  | { readonly header: string }
  /** Name of a parameter in the query. */
  | { readonly query: string };

/** The same in one shape. */
export interface StickyKey {
  readonly kind: 'address' | 'cookie' | 'header' | 'query';
  /** Empty for the address. */
  readonly name: string;
}

const kinds = ['cookie', 'header', 'query'] as const;
/** A token of HTTP (RFC 9110, section 5.6.2). */
const token = /^[\w!#$%&'*+.^`|~-]+$/;
const expected = "'address', or one of { cookie: NAME }, { header: NAME }, { query: NAME }";

/** Throws `OPTION_INVALID`. */
export function stickyKey(given: Sticky): StickyKey {
  if (given === 'address') return { kind: given, name: '' };
  if (typeof given !== 'object' || given === null) throw invalid('sticky', given, expected);
  const own = ownOptions<Partial<Record<(typeof kinds)[number], unknown>>>(
    'sticky',
    given,
    new Set(kinds),
  );
  const [kind, ...others] = kinds.filter((each) => own[each] !== undefined);
  if (kind === undefined || others.length > 0) throw invalid('sticky', given, expected);
  const name = own[kind];
  if (typeof name === 'string' && token.test(name)) return { kind, name };
  throw invalid(`sticky.${kind}`, name, 'a name without spaces and separators');
}
