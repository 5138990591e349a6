// Announces lost instances: one message for those of a deployment that share their fate.

import { announcements } from '../../lib/index.js';
import type { DirectedDeployment, Placed } from './deployment.js';

/** The reason of a failure, and the stack of the error that code of the unit threw, where it is known. */
export interface Failure {
  readonly why: string;
  readonly stack?: string | undefined;
}

interface Lost {
  readonly some: readonly Placed[];
  /** `undefined`: they are given up. */
  readonly delayMs: number | undefined;
}

export function announceLosses(
  all: readonly Lost[],
  { why, stack }: Failure,
  ownerOf: (placed: Placed) => DirectedDeployment | undefined,
): void {
  const messages = new Map<string, { readonly lost: Lost; readonly placed: Placed[] }>();
  for (const lost of all) {
    for (const placed of lost.some) {
      const key = `${placed.deployment} ${lost.delayMs}`;
      const message = messages.get(key) ?? { lost, placed: [] };
      message.placed.push(placed);
      messages.set(key, message);
    }
  }
  for (const { lost, placed } of messages.values()) {
    const [owner] = placed.map(ownerOf);
    if (owner === undefined) continue; // undeployed meanwhile
    const { name: unit, id: deployment } = owner;
    const instances = placed.map(({ instance }) => instance);
    const { delayMs } = lost;
    const next = delayMs === undefined ? 'never' : 'again';
    announcements.unitLost.publish({ unit, deployment, instances, why, stack, next, delayMs });
  }
}
