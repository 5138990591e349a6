// What whoever sends tasks into a cluster, or takes them there, needs of it, and whether it may: workers run
// functions that others send, so both ask for a secret.

import { CodedError } from '../errors.js';
import { clusterClosed } from './errors.js';
import type { NatsConnection } from './nats.js';
import type { Signer } from './signature.js';
import { Subjects } from './subjects.js';

/** What tasks and workers need of a cluster. */
export interface TaskOptions {
  readonly connection: NatsConnection;
  /** The cluster's. */
  readonly name: string;
  readonly signer: Signer | undefined;
}

/** The same where functions may be sent. */
export interface WorkersOptions extends TaskOptions {
  readonly signer: Signer;
  readonly subjects: Subjects;
}

/** Throws `CLUSTER_CLOSED`. */
export function checkOpen({ connection }: TaskOptions): void {
  if (connection.isClosed() || connection.isDraining()) throw clusterClosed();
}

/** Throws `CLUSTER_UNSIGNED`. */
export function requireSigner(options: TaskOptions, what: string): WorkersOptions {
  const { signer, name } = options;
  if (signer !== undefined) return { ...options, signer, subjects: new Subjects(name) };
  const wayOut = 'cluster({ secret }), --cluster-secret FILE or MANYCORE_CLUSTER_SECRET';
  throw new CodedError('CLUSTER_UNSIGNED', `${what}, which needs a secret: ${wayOut}`);
}
