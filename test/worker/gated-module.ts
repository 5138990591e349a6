// A module that loads in workers once a gate (test/pool/tasks/gate.ts) is open. At home it loads at once.

import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';

/** Names the folder of the gate in the environment of a worker. */
export const gatedFolder = 'MANYCORE_TEST_GATED';

const folder = process.env[gatedFolder];
if (folder !== undefined) {
  writeFileSync(join(folder, 'mark-loading'), '');
  while (!existsSync(join(folder, 'open'))) await sleep(2);
  // Reads what was sent before the gate was opened.
  for (let turn = 0; turn < 20; turn += 1) await nextTurn();
}

/** Leaves a trace in `file`. */
export function mark(file: string): void {
  writeFileSync(file, '');
}
