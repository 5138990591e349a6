// The NATS client, an optional peer of this package: loaded when a cluster is joined, and told what suits a
// bus. Not here: what goes over the connection.

import { readFileSync } from 'node:fs';
import { CodedError } from '../errors.js';
import { beforeDeadline, messageOf, prototypeRemedy } from '../internal/index.js';
import { certificateMissing, connectError } from './errors.js';
import { probeServers } from './nats-probe.js';
import { type FilledClusterOptions, type NatsOptions, serversOf } from './options.js';
import { parseNatsClient } from './protocol.js';

// What is used of the client. Its own declarations do not pass the compiler's strictest settings, and
// those of this package must not need it.

export interface NatsMessage {
  readonly subject: string;
  readonly reply?: string;
  readonly data: Uint8Array;
  /** `code` 503: nobody subscribes to what was asked. */
  readonly headers?: { readonly code: number };
}

export interface NatsSubscription {
  /** Nothing new comes; what is on its way does. */
  drain(): Promise<void>;
  unsubscribe(): void;
}

type OnNatsMessage = (error: Error | null, message: NatsMessage) => void;

/** `type` is `disconnect`, `reconnect`, `error` and others; `error` is there for the last. */
export interface NatsStatus {
  readonly type: string;
  readonly error?: Error;
}

export interface NatsConnection {
  /** Of the server; `undefined` while there is none. */
  readonly info?: { readonly max_payload: number; readonly jetstream?: boolean };
  publish(subject: string, bytes: Uint8Array, options?: { readonly reply?: string }): void;
  subscribe(
    subject: string,
    options: { readonly queue?: string; readonly callback: OnNatsMessage },
  ): NatsSubscription;
  /** Resolves when the server has had all until now. */
  flush(): Promise<void>;
  drain(): Promise<void>;
  close(): Promise<void>;
  /** Resolves when it is over for good, with the error for which. */
  closed(): Promise<unknown>;
  isClosed(): boolean;
  /** It is being closed. */
  isDraining(): boolean;
  status(): AsyncIterable<NatsStatus>;
}

export interface NatsClient {
  connect(options: object): Promise<NatsConnection>;
  createInbox(prefix?: string): string;
  credsAuthenticator(credentials: Uint8Array): unknown;
}

const clientName: string = '@nats-io/transport-node';
/** So often a lost connection is tried again, in ms, and what a try may take at random more. */
const reconnectMs = 250;
const jitterMs = 250;
/** Of how long nothing may come before the connection is given up: two pings without an answer. */
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

/** A connection, with a subject below which answers come to it alone. */
export interface Connected {
  readonly connection: NatsConnection;
  readonly inbox: string;
}

/** Rejects with `CLUSTER_CLIENT_MISSING`, `CLUSTER_UNREACHABLE`, `CLUSTER_REFUSED`, `OPTION_INVALID`. */
export async function connectNats(options: FilledClusterOptions, name: string): Promise<Connected> {
  const { nats, timeoutMs } = options;
  const client = await loadClient();
  const list = [nats.servers].flat();
  const servers = serversOf(options);
  if (nats.tls?.['handshakeFirst'] !== true) {
    const { wantsCertificate } = await probeServers(list, timeoutMs).catch((cause: unknown) => {
      throw connectError(servers, cause);
    });
    // The client would wait for it to say why it has hung up.
    if (wantsCertificate && !hasCertificate(nats)) throw certificateMissing(servers);
  }
  const connecting = client.connect({ ...natsOptions(client, nats), name, timeout: timeoutMs });
  const onDeadline = (): Error => new Error(`nothing came within ${timeoutMs} ms`);
  try {
    const connection = await beforeDeadline(connecting, { deadlineMs: timeoutMs, onDeadline });
    return { connection, inbox: client.createInbox(nats.inboxPrefix) };
  } catch (cause) {
    void connecting.then((late) => late.close()).catch(() => {});
    throw connectError(servers, cause);
  }
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
