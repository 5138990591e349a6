// The meta-variables and arguments of a CGI program. RFC 3875, sections 4.1 and 4.4; pure.

import type { IncomingHttpHeaders } from 'node:http';

export interface CgiRequest {
  readonly method: string;
  readonly httpVersion: string;
  readonly headers: IncomingHttpHeaders;
  /** Host that the client names, with its port; `''`: none. */
  readonly host: string;
  /** Path and query, encoded. */
  readonly uri: string;
  /** Query without its question mark; `''`: none. */
  readonly query: string;
  /** Folder in which the rest of a path would be a file. */
  readonly documentRoot: string;
  readonly remoteAddress: string;
  /** `undefined` for Unix sockets. */
  readonly remotePort: number | undefined;
  readonly serverAddress: string;
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
  const { method, httpVersion, headers, host, query, documentRoot, isSecure } = request;
  const variables: Record<string, string | undefined> = {
    PATH: process.env['PATH'],
    GATEWAY_INTERFACE: 'CGI/1.1',
    SERVER_SOFTWARE: 'manycore',
    SERVER_PROTOCOL: `HTTP/${httpVersion}`,
    SERVER_NAME: host.replace(/:\d+$/, '') || 'localhost',
    SERVER_ADDR: request.serverAddress || undefined,
    SERVER_PORT: String(request.serverPort),
    DOCUMENT_ROOT: documentRoot,
    REQUEST_METHOD: method,
    REQUEST_URI: request.uri,
    QUERY_STRING: query,
    SCRIPT_NAME: script.name,
    SCRIPT_FILENAME: script.file,
    PATH_INFO: script.pathInfo || undefined,
    PATH_TRANSLATED: script.pathInfo === '' ? undefined : documentRoot + script.pathInfo,
    REMOTE_ADDR: request.remoteAddress,
    REMOTE_PORT: request.remotePort?.toString(),
    CONTENT_LENGTH: headers['content-length'],
    CONTENT_TYPE: headers['content-type'],
    HTTPS: isSecure ? 'on' : undefined,
  };
  for (const [name, value] of Object.entries(headers)) {
    if (withheld.has(name) || value === undefined) continue;
    // A name with an underscore could collide with another header.
    if (!/^[a-z0-9-]+$/.test(name)) continue;
    const joined = Array.isArray(value) ? value.join(', ') : value;
    variables[`HTTP_${name.toUpperCase().replaceAll('-', '_')}`] = joined;
  }
  variables['HTTP_HOST'] = host || undefined;
  return Object.entries({ ...variables, ...extra }).flatMap(([name, value]) =>
    // A zero byte would end the value.
    value === undefined || value.includes('\0') ? [] : [pair(name, value)],
  );
}

function pair(name: string, value: string): [string, string] {
  return [name, value];
}

/**
 * Splits a query without `=` into arguments: the words of a search. None at all when a word cannot be one, or begins
 * with a dash: a client must not set options of a program (CVE-2012-1823).
 */
export function argumentsOf({ method, query }: Pick<CgiRequest, 'method' | 'query'>): string[] {
  if ((method !== 'GET' && method !== 'HEAD') || query === '' || query.includes('=')) return [];
  try {
    const words = query.split('+').map(decodeURIComponent);
    return words.some((word) => word.startsWith('-') || word.includes('\0')) ? [] : words;
  } catch {
    return [];
  }
}
