// Whose code blocks a loop: the units of it whose modules are on the stack.

import type { ServerBlockedMessage } from '../internal/index.js';
import { placesIn } from '../serve/index.js';
import type { DirectedDeployment } from './deployment.js';

/** The names of those whose module is on the stack, with where in it; where there is none, of all. */
export function blame(
  here: readonly DirectedDeployment[],
  { place, stack }: Pick<ServerBlockedMessage, 'place' | 'stack'>,
) {
  const places = placesIn(stack);
  const isIn = ({ source }: DirectedDeployment, at: string): boolean =>
    source.kind === 'module' && at.startsWith(`${source.url}:`);
  const own = here.filter((each) => places.some((at) => isIn(each, at)));
  const named = own.length === 0 ? here : own;
  const units = [...new Set(named.map(({ name }) => name))];
  return { units, place: places.find((at) => own.some((each) => isIn(each, at))) ?? place };
}
