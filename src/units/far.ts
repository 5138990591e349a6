// The way of a loop, or of a thread beside one, into the cluster of its program.

import type { EventBus } from '../bus/index.js';
import { type ClusterPeer, joinLoop, parseTicket } from '../cluster/index.js';
import { ask } from './ask.js';
import { directorAddress } from './protocol.js';

/** `undefined` where the program is in none. Rejects as `cluster`. */
export async function joinFar(bus: EventBus, member: number): Promise<ClusterPeer | undefined> {
  const ticket = await ask(bus, directorAddress, { type: 'cluster' }, Infinity);
  return ticket === null ? undefined : await joinLoop(bus, parseTicket(ticket), member);
}
