// A program that calls a worker, waits for a given time, and closes nothing.

import { setTimeout as wait } from 'node:timers/promises';
import { run } from '../../../src/public.js';

const [ms] = process.argv.slice(2);
await run(() => 1);
await wait(Number(ms));
