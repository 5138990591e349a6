// The NATS client, an optional peer dependency: loaded when a cluster is joined, and configured for a bus.
// Not here: the messages on the connection.

import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { CodedError } from '../../errors.js';
import { beforeDeadline, messageOf, prototypeRemedy } from '../../lib/index.js';
import { certificateMissing, connectError, isAboutCredentials } from '../errors.js';
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

/** Returns the answer to the nonce of a server, for each connection that is made. */
type Authenticator = (nonce?: string) => unknown;

export interface NatsClient {
  connect(options: object): Promise<NatsConnection>;
  createInbox(prefix?: string): string;
  credsAuthenticator(credentials: Uint8Array): Authenticator;
  nkeyAuthenticator(seed: Uint8Array): Authenticator;
}

const clientName: string = '@nats-io/transport-node';
/** Period between attempts to reconnect, in ms, and the random time added to it. */
const reconnectMs = 250;
const jitterMs = 250;
/** Period of pings; after two unanswered ones the connection is given up. */
const pingIntervalMs = 10_000;
const maxUnansweredPings = 2;
/** Refusals of the credentials in a row after which the connection ends: the first is that of the old connection. */
const maxRefusals = 3;

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
  /** Resolves when the connection has ended for good, with the reason. */
  readonly closed: Promise<unknown>;
}

/** Rejects with `CLUSTER_CLIENT_MISSING`, `CLUSTER_UNREACHABLE`, `CLUSTER_REFUSED`, `OPTION_INVALID`. */
export async function connectNats(options: FilledClusterOptions, name: string): Promise<Connected> {
  const { nats = { servers: [] }, timeoutMs } = options;
  const client = await loadClient();
  const list = [nats.servers].flat();
  const servers = serversOf(options);
  const given = { ...natsOptions(client, nats), name, timeout: timeoutMs };
  if (nats.tls?.handshakeFirst !== true) {
    const { wantsCertificate } = await probeServers(list, timeoutMs).catch((cause: unknown) => {
      throw connectError(servers, cause);
    });
    // With a certificate missing the client would wait for a reason that the server never sends.
    if (wantsCertificate && !hasCertificate(nats)) throw certificateMissing(servers);
  }
  const connecting = client.connect(given);
  const onDeadline = (): Error => new Error(`nothing came within ${timeoutMs} ms`);
  try {
    const connection = await beforeDeadline(connecting, { deadlineMs: timeoutMs, onDeadline });
    const closed = watchConnection(connection);
    return { connection, inbox: client.createInbox(nats.inboxPrefix), closed };
  } catch (cause) {
    void connecting.then((late) => late.close()).catch(() => {});
    throw connectError(servers, cause);
  }
}

/**
 * Ends the connection when the server refuses its credentials several times in a row. Left to itself the client gives
 * up too early: where a connection that expires gets two errors, it does not try the renewed credentials.
 */
async function watchConnection(connection: NatsConnection): Promise<unknown> {
  let refusals = 0;
  let refusal: Error | undefined;
  follow(connection, ({ type, error }) => {
    if (type === 'staleConnection') destroySocket(connection);
    if (type === 'reconnect') refusals = 0;
    if (error === undefined || !isAboutCredentials(error)) return;
    refusals += 1;
    if (refusals < maxRefusals || connection.isClosed()) return;
    refusal = error;
    void connection.close().catch(() => {});
  });
  return (await connection.closed()) ?? refusal;
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
  return tls.certFile !== undefined || tls.cert !== undefined;
}

function natsOptions(client: NatsClient, { credsFile, nkeyFile, ...nats }: NatsOptions): object {
  return {
    pingInterval: pingIntervalMs,
    ...withoutUndefined(nats),
    ...(credsFile !== undefined && {
      authenticator: renewed('nats.credsFile', credsFile, (text) => credentials(client, text)),
    }),
    ...(nkeyFile !== undefined && {
      authenticator: renewed('nats.nkeyFile', nkeyFile, (text) => seed(client, text)),
    }),
    maxPingOut: maxUnansweredPings,
    maxReconnectAttempts: -1,
    ignoreAuthErrorAbort: true, // see watchConnection
    reconnectTimeWait: reconnectMs,
    reconnectJitter: jitterMs,
    noAsyncTraces: true,
  };
}

/**
 * Reads the file anew for each connection: credentials that expire are renewed there. While it cannot be read, its
 * last good text stays in use. Throws `OPTION_INVALID` when there is none yet.
 */
function renewed(
  option: string,
  path: string,
  parse: (text: string) => Authenticator,
): Authenticator {
  const absolute = resolve(path);
  const read = (): Authenticator => parse(readFileSync(absolute, 'utf8'));
  let last: Authenticator;
  try {
    last = read();
  } catch (cause) {
    const message = `${option} ${path} cannot be read: ${messageOf(cause)}`;
    throw new CodedError('OPTION_INVALID', message, { cause });
  }
  return (nonce) => {
    try {
      last = read();
    } catch {
      // it is being renewed
    }
    return last(nonce);
  };
}

function credentials(client: NatsClient, text: string): Authenticator {
  if (!/-----BEGIN NATS USER JWT-----[^]*-----END USER NKEY SEED-----/.test(text)) {
    throw new Error('it holds no credentials');
  }
  // The client reads lines that end with a line feed, the last one too.
  const authenticator = client.credsAuthenticator(
    Buffer.from(`${text.replaceAll('\r\n', '\n')}\n`),
  );
  authenticator(); // reads it, and throws for a text that is only half written
  return authenticator;
}

function seed(client: NatsClient, text: string): Authenticator {
  const [found] = /\bSU[A-Z2-7]{56}\b/.exec(text) ?? [];
  if (found === undefined) throw new Error('it holds no seed of a user, which begins with SU');
  const authenticator = client.nkeyAuthenticator(Buffer.from(found));
  authenticator(); // throws for a wrong checksum
  return authenticator;
}

function withoutUndefined(options: object): object {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
