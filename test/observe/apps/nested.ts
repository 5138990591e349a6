// A program with a worker that opens a pool of its own, which has a worker too.

import { Pool } from '../../../src/public.js';

const pool = new Pool({ size: 1 });
await pool.run(
  async (library) => {
    const { Pool: NestedPool } = await import(library);
    const nested = new NestedPool({ size: 1 });
    await nested.run(() => 1);
    Object.assign(globalThis, { nested });
  },
  new URL('../../../src/public.js', import.meta.url).href,
);
setInterval(() => {}, 1000);
process.once('message', () => {
  // Nothing is answered any more in this time.
  void pool.run(() => {
    for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });
});
