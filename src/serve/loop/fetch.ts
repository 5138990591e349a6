// A request listener for a `fetch` handler: Request in, Response out, bodies streamed both ways.

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { inspect } from 'node:util';
import { nodeHttp } from '../../lib/index.js';

export type FetchHandler = (request: Request) => unknown;

/** Makes the listener; an error of the handler is answered by 500. */
export function fetchListener(handler: FetchHandler): RequestListener {
  return (incoming, outgoing) => void answer(handler, incoming, outgoing);
}

async function answer(
  handler: FetchHandler,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const left = new AbortController();
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) left.abort();
  });
  try {
    const request = requestOf(incoming, left.signal);
    if (typeof request === 'number') {
      outgoing
        .writeHead(request, { 'content-type': 'text/plain' })
        .end(nodeHttp().STATUS_CODES[request]);
      return;
    }
    const response = await handler(request);
    if (!(response instanceof Response)) throw new TypeError('fetch answered no Response');
    await send(response, outgoing);
  } catch (error) {
    if (left.signal.aborted) return; // the client has gone
    process.stderr.write(`${inspect(error)}\n`); // as Deno and Bun do: it is the program's output
    if (outgoing.headersSent) outgoing.destroy();
    else outgoing.writeHead(500, { 'content-type': 'text/plain' }).end('Internal Server Error');
  }
}

/** Valid authority of a URL, without characters that would end it. */
const authorityForm = /^[\w.~%!$&'()*+,;=:[\]-]+$/;
/** Methods that a `Request` may not have (Fetch standard). */
const forbiddenMethods: ReadonlySet<string> = new Set(['CONNECT', 'TRACE', 'TRACK']);

/** Converts a request; returns a status when it cannot be a `Request`. */
function requestOf(incoming: IncomingMessage, signal: AbortSignal): Request | number {
  const { method = 'GET', headers, url = '/', socket } = incoming;
  if (forbiddenMethods.has(method)) return 501;
  const scheme = 'encrypted' in socket ? 'https' : 'http';
  const given = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith(':')) continue;
    for (const each of Array.isArray(value) ? value : [value ?? '']) given.append(name, each);
  }
  const hasBody = method !== 'GET' && method !== 'HEAD';
  // HTTP/2 names the host differently. The path is text: `//here` is no other host.
  const host = String(headers[':authority'] ?? headers.host ?? 'localhost');
  const target = url.startsWith('/') ? `${scheme}://${host}${url}` : url;
  if (!authorityForm.test(host)) return 400;
  const body = hasBody && { body: Readable.toWeb(incoming), duplex: 'half' as const };
  try {
    return new Request(target, { method, headers: given, signal, ...body });
  } catch {
    return 400; // the target is no URL, or has a password
  }
}

async function send(response: Response, outgoing: ServerResponse): Promise<void> {
  const headers: Record<string, string | string[]> = Object.fromEntries(response.headers);
  const cookies = response.headers.getSetCookie();
  if (cookies.length > 0) headers['set-cookie'] = cookies;
  // HTTP/2 has no status text, and Node warns about one.
  if (outgoing.req.httpVersionMajor === 1) outgoing.statusMessage = response.statusText;
  outgoing.writeHead(response.status, headers);
  if (response.body === null) outgoing.end();
  else await pipeline(response.body, outgoing);
}
