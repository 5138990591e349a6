// Where Prometheus asks: HTTP on loopback, unless it is told otherwise, because metrics tell of a program
// what not everybody needs to know. It never keeps the program alive. Any thread of a program that is not
// served may open it, and every loop of one that is (its requests count there as those of the program): it
// answers for the whole program.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIPv6 } from 'node:net';
import type { Registry } from 'prom-client';
import { agentServers } from '../../agent/index.js';
import { CodedError } from '../../errors.js';
import { integer, messageOf, nodeHttp, ownOptions, string } from '../../internal/index.js';
import { isLoopback, isOurHost } from '../host-names.js';

export interface EndpointOptions {
  /** 0 for any that is free. Default: 9464, as OpenTelemetry's exporters have it. */
  readonly port?: number | undefined;
  /** Default: 127.0.0.1. */
  readonly host?: string | undefined;
}

export interface MetricsEndpoint extends AsyncDisposable {
  readonly port: number;
  /** As `http://127.0.0.1:9464/metrics`. */
  readonly url: string;
  /** Resolves when nothing listens any more. Twice is fine. */
  close(): Promise<void>;
}

const defaultPort = 9464;
const names = new Set(['port', 'host']);
const plain = 'text/plain; charset=utf-8';

/**
 * Answers `GET /metrics` with all metrics of this program: of all its threads, and of all processes and
 * loops of its servers. Rejects with `OPTION_INVALID`, and with `METRICS_LISTEN_FAILED` where nothing can
 * listen there.
 */
export async function serveMetrics(options: EndpointOptions = {}): Promise<MetricsEndpoint> {
  const given = ownOptions('the options of serveMetrics', options, names);
  const port = integer('port', given.port ?? defaultPort, 0, 65_535);
  const host = string('host', given.host ?? '127.0.0.1', 'an address');
  const { textRegistry } = await import('./prometheus.js');
  const registry = textRegistry();
  const refusal = isLoopback(host) ? refusalAt(host) : undefined;
  const server = nodeHttp().createServer((request, response) => {
    if (refusal !== undefined && !isOurHost(request.headers.host, [])) {
      say(response, 403, plain, refusal);
    } else void answer(request, response, registry);
  });
  server.on('connection', (socket) => socket.unref());
  agentServers.add(server); // what is not the program's may listen in any thread
  await new Promise<void>((resolve, reject) => {
    // Later ones have nobody to tell: a connection that could not be taken.
    server.on('error', (cause) => reject(listenFailed(host, port, cause)));
    server.listen({ port, host }, resolve);
  });
  server.unref();
  const bound = server.address();
  const boundPort = typeof bound === 'object' && bound !== null ? bound.port : port;
  const closed = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve()); // an error: it is closed already
      server.closeAllConnections();
    });
  return {
    port: boundPort,
    url: `http://${isIPv6(host) ? `[${host}]` : host}:${boundPort}/metrics`,
    close: closed,
    [Symbol.asyncDispose]: closed,
  };
}

/**
 * Whoever comes over loopback comes from this machine: a browser on it may do so for a page of a stranger.
 */
function refusalAt(host: string): string {
  return `metrics at ${host} answer to localhost and to addresses, to no other name: ask by one of them, or give serveMetrics the host under which others may ask\n`;
}

async function answer(
  { method, url = '/' }: IncomingMessage,
  response: ServerResponse,
  registry: Pick<Registry, 'contentType' | 'metrics'>,
): Promise<void> {
  if (url.replace(/\?.*$/s, '') !== '/metrics') {
    say(response, 404, plain, 'metrics are at /metrics\n');
  } else if (method !== 'GET' && method !== 'HEAD') say(response, 405, plain, 'only GET\n');
  else {
    try {
      say(response, 200, registry.contentType, await registry.metrics());
    } catch (error) {
      say(response, 500, plain, `${messageOf(error)}\n`);
    }
  }
}

function say(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { 'Content-Type': type, 'Cache-Control': 'no-store' });
  response.end(body);
}

function listenFailed(host: string, port: number, cause: Error): CodedError {
  const why = messageOf(cause);
  const text = `metrics cannot be served at ${host}:${port}: ${why}; give another port or host`;
  return new CodedError('METRICS_LISTEN_FAILED', text, { cause });
}
