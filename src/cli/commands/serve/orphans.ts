// Duty of process 1, which a command may be in a container: it gets each process whose parent has ended, and has to
// reap it. libuv reaps the children that it has started, by their numbers.

import { callNative, nativeBinding } from '../../../native.js';
import { childrenOf, hasEnded, readStat } from '../../../proc/index.js';

const everyMs = 1000;

/** Reaps orphans from now on, where this is process 1 and has the native core. */
export function reapOrphans(pid = process.pid): void {
  const native = nativeBinding();
  if (pid !== 1 || native === undefined) return;
  let before: ReadonlySet<number> = new Set();
  const reap = (): void => {
    const ended = childrenOf(pid).filter((each) => {
      const stat = readStat(`/proc/${each}`);
      return stat !== undefined && hasEnded(stat);
    });
    // libuv reaps its own within a turn of this loop, so they are gone by now.
    for (const each of ended) if (before.has(each)) callNative(() => native.reapProgram(each));
    before = new Set(ended);
  };
  setInterval(reap, everyMs).unref();
}
