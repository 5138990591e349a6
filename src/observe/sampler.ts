// Polls all programs and makes views of them.

import { Programs } from './programs.js';
import { partitionTrees, usageOf } from './usage.js';
import { type Poll, partitionPids, pidsOf, viewOf } from './views/view.js';
import type { ProgramView } from './views/view-types.js';

export class ProgramSampler implements Disposable {
  readonly #programs = new Programs();
  #before: Poll | undefined;

  /** Returns the present views, with rates since the previous call. Rejects with `RUNTIME_FOLDER_REFUSED`. */
  async sample(): Promise<ProgramView[]> {
    const programs = await this.#programs.poll();
    const trees = partitionTrees(partitionPids(programs));
    const usage = usageOf(pidsOf(programs, trees));
    const now: Poll = { atMs: performance.now(), programs, usage, trees };
    const view = viewOf(now, this.#before);
    this.#before = now;
    return view;
  }

  [Symbol.dispose](): void {
    this.#programs[Symbol.dispose]();
  }
}
