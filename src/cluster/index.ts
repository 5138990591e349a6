export type { ClusterNode } from './bus/nodes.js';
export {
  Cluster,
  type ClusterEvents,
  type ClusterMember,
  type ClusterTicket,
  joinCluster,
  joinLoop,
  type LoopPeer,
} from './cluster.js';
export { clusterData, noData } from './data/cluster-data.js';
export {
  type ClusterOptions,
  type FilledClusterOptions,
  fillClusterOptions,
  type LendOptions,
  type NatsOptions,
} from './options.js';
export { parseTicket } from './protocol.js';
export type { WorkerProvider } from './workers/worker-provider.js';
