// Limits of the shell that are lower than shared memory needs.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPool } from '../pool/calls/ways.js';
import { library, runProgram } from './child.js';

for (const limit of ['0', '100']) {
  test(`under ulimit -f ${limit} calls go over sockets, and a warning has the reason`, async (t) => {
    const { status, stdout, stderr } = await runProgram(
      t,
      `import { pmap, run, shared } from ${JSON.stringify(library)};
       console.log(await run(() => 42), (await pmap([1, 2], (x) => x + 1)).join(), shared(8).length);`,
      { shell: `ulimit -f ${limit} && exec "$@"` },
    );
    assert.deepEqual([status, stdout], [0, '42 2,3 8\n'], stderr);
    assert.match(stderr, /calls go over the socket channel.*a file may have \d+ bytes.*ulimit -f/);
  });
}

test('under ulimit -f 0 a pool with channel "shm" is refused with the reason', async (t) => {
  const { status, stdout, stderr } = await runProgram(
    t,
    `import { Pool } from ${JSON.stringify(library)};
     try { new Pool({ channel: 'shm' }); } catch (error) { console.log(error.code, error.message); }`,
    { shell: 'ulimit -f 0 && exec "$@"' },
  );
  assert.equal(status, 0, stderr);
  assert.match(stdout, /^CHANNEL_UNAVAILABLE .*ulimit -f/);
});

/** One file for a module; Node 20 opens more files at once than such a limit allows. */
const bundle = new URL('../../bundle/index.js', import.meta.url).href;
const skip = Number(process.versions.node.split('.')[0]) < 22 && 'Node 20 loads no modules then';

test('under ulimit -n 25 a call fails in one sentence, and the program goes on', {
  skip,
}, async (t) => {
  const { status, stdout, stderr } = await runProgram(
    t,
    `import { Pool } from ${JSON.stringify(bundle)};
     const pool = new Pool({ size: 1, startRetryMs: 100 });
     try { await pool.run(() => 1); } catch (error) { console.log(error.code, error.message); }
     await pool.close();
     console.log('closed');`,
    { shell: 'ulimit -n 25 && exec "$@"' },
  );
  assert.equal(status, 0, stderr);
  assert.match(
    stdout,
    /^WORKER_START_FAILED .*(?:EMFILE|Too many open files).*\nclosed\n$/,
    stderr,
  );
  assert.doesNotMatch(stdout, /undefined/);
  assert.equal(stderr, '');
});

test('a heap that is too small to start with is refused by its name', async (t) => {
  const pool = openPool(t, { size: 1, maxHeapMb: 2, startRetryMs: 1000 });
  await assert.rejects(
    pool.run(() => 1),
    { code: 'WORKER_START_FAILED', message: /a heap of 2 MiB may be too small.*raise maxHeapMb/ },
  );
});
