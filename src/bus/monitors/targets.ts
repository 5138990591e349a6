// Deployments as targets of monitors: they are made by a higher layer (units/), which registers here how the ends
// of their instances are followed.

import type { Registration } from '../filters/codecs.js';
import type { InstanceEnd, MonitoredDeployment } from './types.js';

/** Calls `listener` for each end of an instance, until the registration is closed. */
export type FollowEnds = (listener: (end: InstanceEnd) => void) => Registration;

const followers = new WeakMap<object, FollowEnds>();

export function setFollower(deployment: MonitoredDeployment, follow: FollowEnds): void {
  followers.set(deployment, follow);
}

/** Returns `undefined` for what is no deployment. */
export function followerOf(target: unknown): FollowEnds | undefined {
  return typeof target === 'object' && target !== null ? followers.get(target) : undefined;
}
