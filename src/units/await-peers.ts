// How long a member of the mesh waits at its start to hear of the consumers of the others.

import { setTimeout as wait } from 'node:timers/promises';
import type { BusLink } from '../bus/index.js';

/** A loop that is busy tells its consumers later; nobody waits longer for it at their start. In ms. */
const introductionMs = 2000;

export async function introducedSoon(links: Iterable<BusLink>): Promise<void> {
  const introduced = Promise.all([...links].map((link) => link.introduced));
  await Promise.race([introduced, wait(introductionMs, undefined, { ref: false })]);
}
