// HTTP endpoint for Prometheus. Default address is loopback, because metrics disclose details of a program.
// It never keeps the program alive. Any thread may open it, also each loop of a served program (its requests
// count there as those of the program). It always answers for the whole program.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIPv6 } from 'node:net';
import { ownServers } from '../../agent/index.js';
import { CodedError } from '../../errors.js';
import {
  closeGently,
  integer,
  messageOf,
  nodeHttp,
  ownOptions,
  serverFd,
  string,
} from '../../lib/index.js';
import { isLoopback, isOurHost } from '../host-names.js';

export interface EndpointOptions {
  /** Port to listen on; 0 chooses a free one. Default: 9464, the port of OpenTelemetry's exporters. */
  readonly port?: number | undefined;
  /** Address to bind. Default: 127.0.0.1. */
  readonly host?: string | undefined;
}

export interface MetricsEndpoint extends AsyncDisposable {
  readonly port: number;
  /** Address of the metrics, such as `http://127.0.0.1:9464/metrics`. */
  readonly url: string;
  /** Resolves when the endpoint no longer listens. May be called twice. */
  close(): Promise<void>;
}

const defaultPort = 9464;
const names = new Set(['port', 'host']);
const plain = 'text/plain; charset=utf-8';

/** An endpoint whose socket another process may take over. */
export interface MetricsServer extends MetricsEndpoint {
  /** Stops, because a successor answers from now on; resolves when all that came here is answered. */
  leave(): Promise<void>;
  /** Stays the endpoint's. */
  readonly fd: number | undefined;
}

/**
 * Answers `GET /metrics` with all metrics of this program: its threads, and the processes and loops of its
 * servers. Rejects with `OPTION_INVALID`, and with `METRICS_LISTEN_FAILED` when it cannot listen there.
 */
export function serveMetrics(options: EndpointOptions = {}): Promise<MetricsEndpoint> {
  return openMetrics(options);
}

/** The same, over the listening socket `socketFd` if there is one, which it takes over. */
export async function openMetrics(
  options: EndpointOptions,
  socketFd?: number,
): Promise<MetricsServer> {
  const given = ownOptions('the options of serveMetrics', options, names);
  const port = integer('port', given.port ?? defaultPort, 0, 65_535);
  const host = string('host', given.host ?? '127.0.0.1', 'an address');
  const { metricsText, textType } = await import('./prometheus.js');
  const metrics = { contentType: textType, metrics: metricsText };
  const refusal = isLoopback(host) ? refusalAt(host) : undefined;
  const server = nodeHttp().createServer((request, response) => {
    if (refusal !== undefined && !isOurHost(request.headers.host, [])) {
      say(response, 403, plain, refusal);
    } else void answer(request, response, metrics);
  });
  server.on('connection', (socket) => socket.unref());
  ownServers.add(server); // may listen in any thread, unlike servers of the program
  await new Promise<void>((resolve, reject) => {
    // After 'listening' this has no effect: an error is a connection that could not be accepted.
    server.on('error', (cause) => reject(listenFailed(host, port, cause)));
    server.listen(socketFd === undefined ? { port, host } : { fd: socketFd }, resolve);
  });
  server.unref();
  const bound = server.address();
  const boundPort = typeof bound === 'object' && bound !== null ? bound.port : port;
  const closed = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve()); // an error: closed already
      server.closeAllConnections();
    });
  return {
    fd: serverFd(server),
    leave: () => closeGently(server),
    port: boundPort,
    url: `http://${isIPv6(host) ? `[${host}]` : host}:${boundPort}/metrics`,
    close: closed,
    [Symbol.asyncDispose]: closed,
  };
}

/** Text of the refusal: a browser on this machine may send requests over loopback for a foreign page. */
function refusalAt(host: string): string {
  return `metrics at ${host} answer to localhost and to addresses, to no other name: ask by one of them, or give serveMetrics the host under which others may ask\n`;
}

interface Metrics {
  readonly contentType: string;
  readonly metrics: () => Promise<string>;
}

async function answer(
  { method, url = '/' }: IncomingMessage,
  response: ServerResponse,
  metrics: Metrics,
): Promise<void> {
  if (url.replace(/\?.*$/s, '') !== '/metrics') {
    say(response, 404, plain, 'metrics are at /metrics\n');
  } else if (method !== 'GET' && method !== 'HEAD') say(response, 405, plain, 'only GET\n');
  else {
    try {
      say(response, 200, metrics.contentType, await metrics.metrics());
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
