export {
  Cluster,
  type ClusterEvents,
  type ClusterTicket,
  joinCluster,
  joinLoop,
} from './cluster.js';
export type { ClusterNode } from './nodes.js';
export {
  type ClusterOptions,
  type FilledClusterOptions,
  fillClusterOptions,
  type LendOptions,
  type NatsOptions,
} from './options.js';
export type { ClusterPeer } from './peer.js';
export { parseTicket } from './protocol.js';
export type { WorkerProvider } from './worker-provider.js';
