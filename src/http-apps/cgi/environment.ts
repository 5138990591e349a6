// The meta-variables of a CGI program. RFC 3875, section 4.1; pure.

import type { IncomingHttpHeaders } from 'node:http';

export interface CgiRequest {
  readonly method: string;
  readonly httpVersion: string;
  readonly headers: IncomingHttpHeaders;
  /** Query without its question mark; `''`: none. */
  readonly query: string;
  readonly remoteAddress: string;
  readonly serverPort: number;
  readonly isSecure: boolean;
}

export interface CgiScript {
  /** The program's file. */
  readonly file: string;
  /** The part of the URL's path that names it. */
  readonly name: string;
  /** The rest of the path, decoded; `''`: none. */
  readonly pathInfo: string;
  /** The folder in which `pathInfo` would be a file. */
  readonly root: string;
}

/** Headers without an `HTTP_` variable: some have names of their own, others are secrets or an attack. */
const withheld: ReadonlySet<string> = new Set([
  'content-length',
  'content-type',
  'authorization',
  'proxy-authorization',
  // Many programs use HTTP_PROXY as their own proxy (CVE-2016-5385).
  'proxy',
  'connection',
]);

/** Makes the variables; of the server's own environment only PATH is included, for the interpreter. */
export function metaVariables(
  request: CgiRequest,
  script: CgiScript,
  extra: Readonly<Record<string, string>>,
): [string, string][] {
  const { method, httpVersion, headers, query, remoteAddress, serverPort, isSecure } = request;
  // HTTP/2 names it differently.
  const host = String(headers[':authority'] ?? headers.host ?? '');
  const variables: Record<string, string | undefined> = {
    PATH: process.env['PATH'],
    GATEWAY_INTERFACE: 'CGI/1.1',
    SERVER_SOFTWARE: 'manycore',
    SERVER_PROTOCOL: `HTTP/${httpVersion}`,
    SERVER_NAME: host.replace(/:\d+$/, '') || 'localhost',
    SERVER_PORT: String(serverPort),
    REQUEST_METHOD: method,
    QUERY_STRING: query,
    SCRIPT_NAME: script.name,
    SCRIPT_FILENAME: script.file,
    PATH_INFO: script.pathInfo || undefined,
    PATH_TRANSLATED: script.pathInfo === '' ? undefined : script.root + script.pathInfo,
    REMOTE_ADDR: remoteAddress,
    CONTENT_LENGTH: headers['content-length'],
    CONTENT_TYPE: headers['content-type'],
    HTTPS: isSecure ? 'on' : undefined,
    HTTP_HOST: host || undefined,
  };
  for (const [name, value] of Object.entries(headers)) {
    if (withheld.has(name) || value === undefined) continue;
    // A name with an underscore could collide with another header.
    if (!/^[a-z0-9-]+$/.test(name)) continue;
    const joined = Array.isArray(value) ? value.join(', ') : value;
    variables[`HTTP_${name.toUpperCase().replaceAll('-', '_')}`] = joined;
  }
  return Object.entries({ ...variables, ...extra }).flatMap(([name, value]) =>
    // A zero byte would end the value.
    value === undefined || value.includes('\0') ? [] : [pair(name, value)],
  );
}

function pair(name: string, value: string): [string, string] {
  return [name, value];
}
