// Data of a cluster for sending and taking tasks, and the check of the secret: workers run functions of
// others, so both sides need one.

import { CodedError } from '../../errors.js';
import type { Signer } from '../bus/signature.js';
import { clusterClosed } from '../errors.js';
import type { NatsConnection } from '../nats/nats.js';
import { Subjects } from '../nats/subjects.js';

/** Data of a cluster that tasks and workers need. */
export interface TaskOptions {
  readonly connection: NatsConnection;
  /** Name of the cluster. */
  readonly name: string;
  readonly signer: Signer | undefined;
}

/** The same for a cluster in which functions may be sent. */
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
