// The units whose code blocks a loop: those whose modules are on its stack.

import type { ServerBlockedMessage } from '../../lib/index.js';
import { placesIn } from '../../serve/index.js';
import type { DirectedDeployment } from '../director/deployment.js';
import { versionMark } from '../protocol.js';

const loadedAnew = new RegExp(`\\?${versionMark}=[^:]*`);

/**
 * Returns the names of the units with a module on the stack, and the place in it; without one, the names of
 * all.
 */
export function blame(
  here: readonly DirectedDeployment[],
  { place, stack }: Pick<ServerBlockedMessage, 'place' | 'stack'>,
) {
  const places = placesIn(stack);
  const isIn = ({ source }: DirectedDeployment, at: string): boolean =>
    source.kind === 'module' && at.replace(loadedAnew, '').startsWith(`${source.url}:`);
  const own = here.filter((each) => places.some((at) => isIn(each, at)));
  const named = own.length === 0 ? here : own;
  const units = [...new Set(named.map(({ name }) => name))];
  return { units, place: places.find((at) => own.some((each) => isIn(each, at))) ?? place };
}
