export { bus, cluster, deploy, deployAll } from './default.js';
export { type LoopNumber, Loops, type LoopsOptions } from './director/loops.js';
export { unitStack } from './errors.js';
export { isLikeUnit } from './options.js';
export { sharedCounter, sharedLock, sharedMap } from './shared-data.js';
export type {
  BlockingOptions,
  DeployAllOptions,
  Deployment,
  DeploymentGroup,
  DeployOptions,
  GroupMember,
  InstanceHealth,
  InstanceState,
  InstanceStatus,
  RestartStrategy,
  RestartsOption,
  Unit,
  UnitContext,
  UnitLike,
  UnitObject,
  UnitPlacement,
} from './types.js';
