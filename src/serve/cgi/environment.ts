// The meta-variables of a CGI program. RFC 3875, section 4.1; pure.

import type { IncomingHttpHeaders } from 'node:http';

export interface CgiRequest {
  readonly method: string;
  readonly httpVersion: string;
  readonly headers: IncomingHttpHeaders;
  /** Without its question mark; `''` for none. */
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
  /** What follows it, decoded; `''` for nothing. */
  readonly pathInfo: string;
  /** The folder in which `pathInfo` would be a file. */
  readonly root: string;
}

/** Headers that are no variables: two have names of their own, one is a secret, one an attack. */
const withheld: ReadonlySet<string> = new Set([
  'content-length',
  'content-type',
  'authorization',
  'proxy-authorization',
  // HTTP_PROXY is what many programs take for their own proxy (CVE-2016-5385).
  'proxy',
  'connection',
]);

/** Of the server's own environment a program sees only what finds its interpreter. */
export function metaVariables(
  request: CgiRequest,
  script: CgiScript,
  extra: Readonly<Record<string, string>>,
): [string, string][] {
  const { method, httpVersion, headers, query, remoteAddress, serverPort, isSecure } = request;
  // HTTP/2 has it under another name.
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
    // An underscore in a name would make it that of another header.
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
