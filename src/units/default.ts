// `deploy` and `bus` without `Loops` of one's own. In a loop they are the loop's. Elsewhere they use loops
// that the first deployment starts, and that end when nothing is deployed any more.

import { type Bus, forwardingBus } from '../bus/index.js';
import type { Cluster, ClusterOptions } from '../cluster/index.js';
import { CodedError } from '../errors.js';
import { currentInstance, loopBus, programBus } from './current.js';
import { Loops } from './director/loops.js';
import { remoteDeploy, remoteDeployAll } from './director/remote.js';
import type {
  DeployAllOptions,
  Deployment,
  DeploymentGroup,
  DeployOptions,
  GroupMember,
  UnitLike,
} from './types.js';

let shared: Loops | undefined;

function defaultLoops(): Loops {
  shared ??= Loops.ofProgram();
  return shared;
}

/**
 * Starts instances of a unit on the loops of this program, as `Loops.deploy`. Called by an instance, the
 * deployment ends with that instance.
 */
export async function deploy<Config = unknown>(
  unit: UnitLike<Config>,
  options?: DeployOptions<Config>,
): Promise<Deployment> {
  const ofLoop = loopBus();
  if (ofLoop === undefined) return await defaultLoops().deploy(unit, options);
  return await remoteDeploy(ofLoop, currentInstance()?.id)(unit, options);
}

/**
 * Deploys units in order on the loops of this program, as `Loops.deployAll`. Called by an instance, they end with
 * that instance.
 */
export async function deployAll(
  units: readonly GroupMember[],
  options?: DeployAllOptions,
): Promise<DeploymentGroup> {
  const ofLoop = loopBus();
  if (ofLoop === undefined) return await defaultLoops().deployAll(units, options);
  return await remoteDeployAll(ofLoop, currentInstance()?.id)(units, options);
}

/**
 * Connects the bus of this program and of its loops to NATS, or to the bus of this machine: from now on it
 * reaches the programs that have done the same. To be called before the first deployment; `close()` of the
 * result ends it. Rejects with `CLUSTER_CLIENT_MISSING`, `CLUSTER_UNREACHABLE`, `CLUSTER_REFUSED`,
 * `RUNTIME_FOLDER_REFUSED`, `OPTION_INVALID`.
 */
export async function cluster(options: ClusterOptions): Promise<Cluster> {
  if (loopBus() === undefined) return await defaultLoops().join(options);
  const message = 'a loop is in the cluster of the program that started it: call cluster() there';
  throw new CodedError('OPTION_INVALID', message);
}

/** Returns the cluster that this program has joined by `cluster()`. */
export function programCluster(): Cluster | undefined {
  return shared?.cluster;
}

/** The bus of the unit whose code calls it, of the loop, or of the program around the loops. */
export const bus: Bus = forwardingBus(() => programBus() ?? defaultLoops().bus);
