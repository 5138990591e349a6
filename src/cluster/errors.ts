// The errors of a cluster that more than one of its files gives, and what the NATS client's mean.

import { CodedError } from '../errors.js';
import { messageOf } from '../internal/index.js';

export function clusterClosed(): CodedError {
  const message = 'the connection to the NATS server is closed: join the cluster again';
  return new CodedError('CLUSTER_CLOSED', message);
}

export function refused(why: string, cause?: unknown): CodedError {
  return new CodedError('CLUSTER_REFUSED', why, { cause });
}

/** Why there is no connection. */
export function connectError(servers: string, cause: unknown): CodedError {
  const name = cause instanceof Error ? cause.name : '';
  if (/Authorization|Authentication|Permission/.test(name)) {
    const why = `the NATS server at ${servers} refuses these credentials: ${messageOf(cause)}`;
    return refused(why, cause);
  }
  const why = `no NATS server answers at ${servers}: ${messageOf(cause)}`;
  return new CodedError('CLUSTER_UNREACHABLE', `${why}: start it, or give where it is`, { cause });
}

/** Why nothing durable can be done. */
export function notDurable(cause: unknown): CodedError {
  const wayOut = 'start nats-server with -js, and allow $JS.API.> and $JS.ACK.>';
  const message = `durable tasks need JetStream: ${messageOf(cause)}: ${wayOut}`;
  return new CodedError('CLUSTER_NOT_DURABLE', message, { cause });
}
