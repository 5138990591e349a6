// What `run` and `worker` are told of a cluster, and what they tell of it.

import { readFileSync } from 'node:fs';
import type { Cluster, ClusterNode, ClusterOptions } from '../cluster/index.js';
import { CodedError } from '../errors.js';
import { messageOf } from '../internal/index.js';

const secretVariable = 'MANYCORE_CLUSTER_SECRET';

export interface ClusterFlags {
  readonly clusterName?: string | undefined;
  /** The path of a file: everybody can read command lines. */
  readonly clusterSecret?: string | undefined;
}

/** `nats`: URLs with commas between them. Throws `OPTION_INVALID`. */
export function clusterOptions(
  nats: string,
  { clusterName: name, clusterSecret }: ClusterFlags,
): ClusterOptions {
  const fromFile = clusterSecret === undefined ? undefined : secretIn(clusterSecret);
  return { nats: nats.split(','), name, secret: fromFile ?? process.env[secretVariable] };
}

function secretIn(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (cause) {
    const message = `--cluster-secret must be a file that holds it: ${messageOf(cause)}`;
    throw new CodedError('OPTION_INVALID', message, { cause });
  }
}

/** On stdout who is there, comes and goes. */
export function tellCluster(cluster: Cluster): void {
  const tell = (what: string, { host, pid }: ClusterNode): void => {
    console.log(`${what}: ${host}, process ${pid} (${plural(cluster.nodes.length, 'other node')})`);
  };
  console.log(`in the cluster, with ${plural(cluster.nodes.length, 'other node')}`);
  cluster.on('join', (node) => tell('joined', node));
  cluster.on('leave', (node) => tell('left', node));
  cluster.closed.catch((error: unknown) => {
    console.error(`manycore: the cluster is left: ${messageOf(error)}`);
  });
}

export function plural(count: number, what: string): string {
  const many = what.endsWith('s') ? `${what}es` : `${what}s`;
  return `${count} ${count === 1 ? what : many}`;
}
