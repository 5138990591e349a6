// Errors that several files of the cluster create, and the meaning of errors of the NATS client.

import { CodedError } from '../errors.js';
import { messageOf } from '../lib/index.js';

export function clusterClosed(): CodedError {
  const message = 'the connection to the NATS server is closed: join the cluster again';
  return new CodedError('CLUSTER_CLOSED', message);
}

export function refused(why: string, cause?: unknown): CodedError {
  return new CodedError('CLUSTER_REFUSED', why, { cause });
}

export function certificateMissing(servers: string): CodedError {
  const why = `the NATS server at ${servers} requires a client certificate`;
  const way = '--cluster-tls-cert FILE with --cluster-tls-key FILE, or tls: { certFile, keyFile }';
  return refused(`${why}: give ${way}`);
}

/** Returns true for an error of the NATS client about credentials that are wrong or have expired. */
export function isAboutCredentials({ name }: Error): boolean {
  return /Authorization|Authentication/.test(name);
}

/** Returns the error for a connection that could not be made or kept. */
export function connectError(servers: string, cause: unknown): CodedError {
  if (cause instanceof Error && (isAboutCredentials(cause) || /Permission/.test(cause.name))) {
    const why = `the NATS server at ${servers} refuses these credentials: ${messageOf(cause)}`;
    return refused(why, cause);
  }
  if (/'tls'/.test(messageOf(cause))) {
    const why = `the NATS server at ${servers} has no TLS: set it up there, or give nats://…`;
    return new CodedError('CLUSTER_UNREACHABLE', why, { cause });
  }
  if (/certificate|\bTLS\b|\bSSL\b/i.test(messageOf(cause))) {
    const why = `there is no TLS with the NATS server at ${servers}: ${messageOf(cause)}`;
    const way =
      'give the authority that signed its certificate (--cluster-tls-ca FILE, tls.caFile)';
    return new CodedError('CLUSTER_UNREACHABLE', `${why}: ${way}`, { cause });
  }
  const why = `no NATS server answers at ${servers}: ${messageOf(cause)}`;
  return new CodedError('CLUSTER_UNREACHABLE', `${why}: start it, or correct its URL`, { cause });
}

/**
 * Error codes of the JetStream API for limits of an account, of the server (also for new streams, on disk and in
 * memory), and of a stream (nats-server, server/errors.json).
 */
const noRoomCodes: readonly unknown[] = [10002, 10023, 10047, 10028, 10077];

/** Returns true for the refusal of a second message of a subject, which has the code of a full stream. */
export function isSubjectFull(error: unknown): boolean {
  const { code, message } = Object(error);
  return code === 10077 && /per subject/.test(message);
}

/** Returns true when the server has no room for what was to be stored. */
export function hasNoRoom(error: unknown): boolean {
  return noRoomCodes.includes(Object(error).code) && !isSubjectFull(error);
}

/** Returns the error for durable tasks, or other stored data (`what`), that cannot be used. */
export function notDurable(cause: unknown, what = 'durable tasks'): CodedError {
  if (cause instanceof CodedError && cause.code === 'CLUSTER_NOT_DURABLE') return cause;
  if (hasNoRoom(cause)) {
    const why = `the NATS server has no room for ${what} (${messageOf(cause)})`;
    const way = 'raise its max_file_store or the max_bytes of the stream, or delete old data there';
    return new CodedError('CLUSTER_NOT_DURABLE', `${why}: ${way}`, { cause });
  }
  const wayOut = 'start nats-server with -js, and allow $JS.API.> and $JS.ACK.>';
  const message = `${what} need JetStream: ${messageOf(cause)}: ${wayOut}`;
  return new CodedError('CLUSTER_NOT_DURABLE', message, { cause });
}

/** `what`: a sentence without its end. */
export function noServer(what: string): CodedError {
  const message = `${what} over NATS only, and this cluster has no server: give cluster({ nats })`;
  return new CodedError('OPTION_INVALID', message);
}
