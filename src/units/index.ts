export { bus, deploy } from './default.js';
export { Loops, type LoopsOptions } from './loops.js';
export type {
  Deployment,
  DeployOptions,
  InstanceHealth,
  InstanceState,
  InstanceStatus,
  Unit,
  UnitContext,
  UnitLike,
  UnitObject,
} from './types.js';
