// A program that serves another one, with a socket for `manycore status` or without, and reports its start.

import { serve } from '../../../src/serve/index.js';

const [, , control] = process.argv;
const served = await serve(new URL('./answer.js', import.meta.url), {
  processes: 1,
  loops: 1,
  control: control === 'true',
});
process.once('SIGTERM', () => void served.close());
process.send?.('serves');
