export { bus, cluster, deploy } from './default.js';
export { type LoopNumber, Loops, type LoopsOptions } from './director/loops.js';
export { sharedCounter, sharedLock, sharedMap } from './shared-data.js';
export type {
  BlockingOptions,
  Deployment,
  DeployOptions,
  InstanceHealth,
  InstanceState,
  InstanceStatus,
  RestartsOption,
  Unit,
  UnitContext,
  UnitLike,
  UnitObject,
  UnitPlacement,
} from './types.js';
