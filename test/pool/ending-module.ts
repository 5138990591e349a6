// A module that does not load in workers, by an environment variable; in the program it loads at once.

import { writeFileSync } from 'node:fs';

/** The effect of its load in a worker. */
export const loadVariable = 'MANYCORE_TEST_LOAD';
/** The file that shows that it loads. */
export const loadingVariable = 'MANYCORE_TEST_LOADING';

const how = process.env[loadVariable];
const mark = process.env[loadingVariable];
if (mark !== undefined) writeFileSync(mark, '');
if (how === 'spins') for (;;);
if (how === 'awaits') await new Promise(() => setInterval(() => {}, 1_000));
if (how === 'exits') process.exit(7);
if (how === 'is killed') process.kill(process.pid, 'SIGKILL');

export const one = (): number => 1;
