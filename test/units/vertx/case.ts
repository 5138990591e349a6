// A case of Vert.x's tests of deployments, on loops that all cases share.

import type { Loops, UnitContext } from '../../../src/public.js';

export interface UnitCase {
  /** The name of Vert.x's test. */
  readonly name: string;
  /** The expectation of Vert.x's test. */
  readonly expects: string;
  /** Checks it, or the difference. `words` has what its units `say`, from `word` on. */
  readonly run?: ((stage: Stage) => Promise<void>) | undefined;
  /** The file in `test/` and the title of another test that checks it. */
  readonly shownBy?: readonly [file: string, title: string];
  /** The difference, in one sentence. */
  readonly differs?: string;
  /** Reason why there is nothing like it here, in one sentence. */
  readonly absent?: string;
}

export interface Stage {
  readonly loops: Loops;
  /** Address of `words`, of this case alone. */
  readonly address: string;
  /** Bodies sent to `address`. */
  readonly words: readonly unknown[];
  /** Waits until there are `count` words; returns all, sorted. */
  said(count: number): Promise<readonly unknown[]>;
}

/** Returns a unit that sends `start` and `stop`, with `suffix`, to `address`. */
export function speaking(address: string, suffix = ''): (context: UnitContext) => () => void {
  return ({ bus }) => {
    bus.send(address, `start${suffix}`);
    return () => void bus.send(address, `stop${suffix}`);
  };
}
