// Waits at the start of a member of the mesh until the other members have announced their consumers.

import { setTimeout as wait } from 'node:timers/promises';
import type { BusLink } from '../../bus/index.js';

/** A busy loop announces its consumers later; a starting member waits no longer than this for it. In ms. */
const announcementMs = 2000;

export async function awaitPeers(links: Iterable<BusLink>): Promise<void> {
  const announced = Promise.all([...links].map((link) => link.announced));
  await Promise.race([announced, wait(announcementMs, undefined, { ref: false })]);
}
