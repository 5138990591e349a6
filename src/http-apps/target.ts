// The forms of a request target: RFC 9112, 3.2. Pure. The router of apps with names reads them by the same rules
// before a process gets the connection (crates/core/src/accept/server_name.rs).

/** A request target; forms without a path (`*`) stay as they are. */
export interface Target {
  /** Host and port of an absolute-form target, which count over the `Host` header; `undefined` for other forms. */
  readonly authority: string | undefined;
  /** Path and query. */
  readonly local: string;
}

/**
 * Reads the target of a request. Returns `undefined` for an absolute form without a host, or with a user, which
 * serves to disguise hosts (RFC 9110, 4.2.4): to be answered with 400.
 */
export function targetOf(url: string): Target | undefined {
  const parts = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)(.*)$/is.exec(url);
  if (parts === null) return { authority: undefined, local: url };
  const [, authority = '', rest = ''] = parts;
  if (authority.includes('@') || /^(:|$)/.test(authority)) return undefined;
  return { authority, local: rest.startsWith('/') ? rest : `/${rest}` };
}
