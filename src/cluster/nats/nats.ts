// The NATS client, an optional peer dependency: loaded when a cluster is joined, and configured for a bus.
// Not here: the messages on the connection.

import { readFileSync } from 'node:fs';
import { CodedError } from '../../errors.js';
import { beforeDeadline, messageOf, prototypeRemedy } from '../../lib/index.js';
import { certificateMissing, connectError } from '../errors.js';
import { type FilledClusterOptions, type NatsOptions, serversOf } from '../options.js';
import { parseNatsClient } from '../protocol.js';
import { follow } from './listen.js';
import { probeServers } from './nats-probe.js';

// The part of the client that is used here. The client's own declarations do not compile under the
// strictest settings, and the declarations of this package must not depend on them.

export interface NatsMessage {
  readonly subject: string;
  readonly reply?: string;
  readonly data: Uint8Array;
  /** `code` 503: the subject of the request has no subscribers. */
  readonly headers?: { readonly code: number };
}

export interface NatsSubscription {
  /** Ends the subscription after the messages that are already on their way. */
  drain(): Promise<void>;
  unsubscribe(): void;
}

type OnNatsMessage = (error: Error | null, message: NatsMessage) => void;

/** `type` is `disconnect`, `reconnect`, `staleConnection`, `error` and others; `error` is set for `error` only. */
export interface NatsStatus {
  readonly type: string;
  readonly error?: Error;
}

export interface NatsConnection {
  /** Information of the server; `undefined` without a connection. */
  readonly info?: { readonly max_payload: number; readonly jetstream?: boolean };
  publish(subject: string, bytes: Uint8Array, options?: { readonly reply?: string }): void;
  subscribe(
    subject: string,
    options: { readonly queue?: string; readonly callback: OnNatsMessage },
  ): NatsSubscription;
  /** Resolves when the server has received everything sent so far. */
  flush(): Promise<void>;
  drain(): Promise<void>;
  close(): Promise<void>;
  /** Resolves when the connection has ended for good, with the error that ended it. */
  closed(): Promise<unknown>;
  isClosed(): boolean;
  /** True while the connection is being closed. */
  isDraining(): boolean;
  status(): AsyncIterable<NatsStatus>;
}

export interface NatsClient {
  connect(options: object): Promise<NatsConnection>;
  createInbox(prefix?: string): string;
  credsAuthenticator(credentials: Uint8Array): unknown;
}

const clientName: string = '@nats-io/transport-node';
/** Period between attempts to reconnect, in ms, and the random time added to it. */
const reconnectMs = 250;
const jitterMs = 250;
/** Period of pings; after two unanswered ones the connection is given up. */
const pingIntervalMs = 10_000;
const maxUnansweredPings = 2;

async function loadClient(): Promise<NatsClient> {
  let client: unknown;
  try {
    client = await import(clientName);
  } catch (cause) {
    const wayOut = prototypeRemedy(cause) ?? `npm install ${clientName}`;
    const message = `a cluster needs the client of NATS (${messageOf(cause)}): ${wayOut}`;
    throw new CodedError('CLUSTER_CLIENT_MISSING', message, { cause });
  }
  return parseNatsClient(client);
}

/** A connection, and a subject prefix for answers to this connection only. */
export interface Connected {
  readonly connection: NatsConnection;
  readonly inbox: string;
}

/** Rejects with `CLUSTER_CLIENT_MISSING`, `CLUSTER_UNREACHABLE`, `CLUSTER_REFUSED`, `OPTION_INVALID`. */
export async function connectNats(options: FilledClusterOptions, name: string): Promise<Connected> {
  const { nats = { servers: [] }, timeoutMs } = options;
  const client = await loadClient();
  const list = [nats.servers].flat();
  const servers = serversOf(options);
  if (nats.tls?.['handshakeFirst'] !== true) {
    const { wantsCertificate } = await probeServers(list, timeoutMs).catch((cause: unknown) => {
      throw connectError(servers, cause);
    });
    // With a certificate missing the client would wait for a reason that the server never sends.
    if (wantsCertificate && !hasCertificate(nats)) throw certificateMissing(servers);
  }
  const connecting = client.connect({ ...natsOptions(client, nats), name, timeout: timeoutMs });
  const onDeadline = (): Error => new Error(`nothing came within ${timeoutMs} ms`);
  try {
    const connection = await beforeDeadline(connecting, { deadlineMs: timeoutMs, onDeadline });
    follow(connection, ({ type }) => {
      if (type === 'staleConnection') destroySocket(connection);
    });
    return { connection, inbox: client.createInbox(nats.inboxPrefix) };
  } catch (cause) {
    void connecting.then((late) => late.close()).catch(() => {});
    throw connectError(servers, cause);
  }
}

/**
 * Ends a connection whose pings are unanswered. The client first writes what it has, which takes minutes where the
 * socket's buffer is full: until then it neither reports the loss nor connects again.
 */
function destroySocket(connection: NatsConnection): void {
  const { protocol } = Object(connection);
  protocol?.transport?.socket?.destroy();
}

function hasCertificate({ tls = {} }: NatsOptions): boolean {
  return tls['certFile'] !== undefined || tls['cert'] !== undefined;
}

function natsOptions(client: NatsClient, { credsFile, ...nats }: NatsOptions): object {
  return {
    pingInterval: pingIntervalMs,
    ...withoutUndefined(nats),
    ...(credsFile !== undefined && { authenticator: credentials(client, credsFile) }),
    maxPingOut: maxUnansweredPings,
    maxReconnectAttempts: -1,
    reconnectTimeWait: reconnectMs,
    reconnectJitter: jitterMs,
    noAsyncTraces: true,
  };
}

function credentials(client: NatsClient, path: string): unknown {
  try {
    const text = readFileSync(path);
    if (!text.includes('-----BEGIN NATS USER JWT-----')) throw new Error('it holds no credentials');
    return client.credsAuthenticator(text);
  } catch (cause) {
    const message = `nats.credsFile ${path} cannot be read: ${messageOf(cause)}`;
    throw new CodedError('OPTION_INVALID', message, { cause });
  }
}

function withoutUndefined(options: object): object {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
