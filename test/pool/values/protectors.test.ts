// V8's protectors stay intact in the caller and in workers. Each stands for something that no code of an isolate
// has done, such as detaching a buffer; after the first time V8 compiles slower code for all of it
// (v8/src/execution/protectors.h). Programs of their own, which print what V8 notes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { programFolder, runNode } from '../programs.js';

const flag = '--trace-protector-invalidation';
/** Lost in Node 24 by the first Buffer over native memory, in programs without manycore as well. */
const lostByNode = 'TypedArrayLengthLookupChain';

for (const worker of ['process', 'thread']) {
  // A flag of V8 counts in all threads of its process, and a worker thread takes none of its own.
  const options =
    worker === 'process' ? `{ size: 1, execArgv: ['${flag}'] }` : `{ size: 1, worker: 'thread' }`;
  test(`calls, maps and large values to a ${worker} leave V8's protectors intact`, async (t) => {
    const text = `import { Pool, pmap } from 'manycore';
      const pool = new Pool(${options});
      const list = [1, 2];
      const table = new Map([[1, new Float64Array(5000)]]);
      let step = 3;
      const results = [
        await pool.run(() => step + list.length + table.get(1).length),
        (await pool.run(() => new Uint8Array(3_000_000))).length,
        await pool.run((bytes) => bytes.length, new Uint8Array(5_000_000)),
        (await pmap(list, (item) => item * step, { pool })).length,
      ];
      console.log(JSON.stringify(results));
      const detach = () => structuredClone(1, { transfer: [new ArrayBuffer(8)] });
      detach();
      await pool.run(detach);
      console.log('end');
      await pool.close();`;
    const folder = programFolder(t, { 'main.mjs': text });
    const { lines, stderr, exitCode } = await runNode(folder, [flag, 'main.mjs']);
    assert.equal(exitCode, 0, stderr);
    const end = lines.findIndex((line) => line.startsWith('['));
    assert.equal(lines[end], '[5005,3000000,5000000,2]');
    const lost = lines.slice(0, end).filter((line) => !line.endsWith(lostByNode));
    assert.deepEqual(lost, []);
    // Both were intact: V8 notes a loss once.
    const detached = lines.slice(end, lines.indexOf('end'));
    assert.equal(detached.filter((line) => line.endsWith('ArrayBufferDetaching')).length, 2);
  });
}
