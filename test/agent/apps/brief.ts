// A program that calls a worker, waits for a message, and closes nothing.

import { run } from '../../../src/public.js';

process.once('message', () => process.disconnect());
await run(() => 1);
