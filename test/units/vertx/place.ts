// The loops of the cases, and the words of each.

import { Loops } from '../../../src/public.js';
import { waitFor } from '../../support/index.js';
import type { UnitCase } from './case.js';

/** Loops of a case that closes them. */
export function startHere(): Loops {
  return new Loops({ processes: 1, loops: 1 });
}

let cases = 0;

/** Runs a case; throws what its checks throw, or when a deployment stays. */
export async function runCase(loops: Loops, { name, run }: UnitCase): Promise<void> {
  cases += 1;
  const address = `case ${cases}`;
  const words: unknown[] = [];
  using _ = loops.bus.consumer(address, ({ body }) => words.push(body));
  const said = async (count: number): Promise<readonly unknown[]> => {
    await waitFor(() => words.length >= count, undefined, `${count} words`);
    return words.toSorted();
  };
  await run?.({ loops, address, words, said });
  if (loops.deployments.length > 0) throw new Error(`a deployment of ${name} stays`);
}
