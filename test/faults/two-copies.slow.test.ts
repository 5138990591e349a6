// Two copies of manycore in one program, as two versions in node_modules are. Each runs its tasks, a task may
// call either copy, and memory that only one of them can share is refused by the other.

import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type * as manycore from '../../src/public.js';
import type { Pool } from '../../src/public.js';
import { ways } from '../pool/calls/ways.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));

const folder = mkdtempSync(join(realpathSync(tmpdir()), 'manycore-copy-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/** The library as it is shipped, once more: the package that another package, `owner`, depends on. */
async function copyOf(owner: string): Promise<typeof manycore> {
  const copy = join(folder, 'node_modules', owner, 'node_modules/manycore');
  cpSync(join(root, 'dist/bundle'), join(copy, 'dist/bundle'), { recursive: true });
  for (const name of ['package.json', 'prebuilds', 'node_modules']) {
    symlinkSync(join(root, name), join(copy, name));
  }
  return await import(pathToFileURL(join(copy, 'dist/bundle/index.js')).href);
}

const own = await copyOf('one');
const other = await copyOf('another');
const { hasCode, shared } = own;
assert.notEqual(other.shared, shared);

const way = ways.find(({ channel }) => channel === 'shm');

test('memory of another copy of manycore is refused, not copied', async (t) => {
  assert.ok(way !== undefined);
  const { worker, channel } = way;
  const pool: Pool = new own.Pool({ size: 1, worker, channel });
  t.after(() => pool.destroy());
  const { shared: otherShared } = other;
  const refusal = (path: RegExp) => (error: unknown) => {
    assert.ok(hasCode(error, 'TRANSFER_UNSUPPORTED'), String(error));
    assert.match(error.message, /another copy of manycore.*allocate it with shared\(\)/);
    assert.match(error.message, path);
    return true;
  };
  const fill = (given: Uint8Array): unknown => given.fill(7);
  for (const sizeBytes of [4, 100_000]) {
    const foreign = otherShared(sizeBytes);
    const part = new Uint8Array(foreign.buffer, foreign.byteOffset, 2);
    await assert.rejects(pool.run(fill, foreign), refusal(/path: the arguments\[0\]/));
    await assert.rejects(pool.run(fill, part), refusal(/path: the arguments\[0\]/));
    const inside = { list: [foreign.buffer] };
    await assert.rejects(
      pool.run((given) => given.list.length, inside),
      refusal(/\.list\[0\]/),
    );
    await assert.rejects(
      pool.run(() => foreign.length),
      refusal(/variable foreign/),
    );
  }
  const mine = shared(4);
  await pool.run(fill, mine);
  assert.equal(mine[0], 7);
});

for (const copies of [
  { runs: own, asked: other },
  { runs: other, asked: own },
]) {
  test(`a task of ${copies.runs === own ? 'this' : 'the other'} copy may call the other one`, async (t) => {
    const { workerNumber, isInsideWorker, report, run, taskSignal } = copies.asked;
    for (const worker of ['process', 'thread'] as const) {
      // The default grace time is short for a busy machine: it would replace a worker that stops.
      const pool = new copies.runs.Pool({ size: 1, worker, graceMs: 30_000 });
      t.after(() => pool.close());
      const controller = new AbortController();
      const waiting = pool
        .with({ signal: controller.signal, onReport: () => controller.abort() })
        .run(async () => {
          const signal = taskSignal();
          void report('begun'); // is not read any more
          await new Promise((resolve) => signal?.addEventListener('abort', resolve));
        });
      await assert.rejects(waiting, { name: 'AbortError' });
      // A worker that did not stop at the signal is replaced by another one.
      const where = async () => [isInsideWorker(), workerNumber(), await run(isInsideWorker)];
      assert.deepEqual(await pool.run(where), [true, pool.stats().workers[0]?.id, true], worker);
      assert.equal(pool.stats().startedWorkers, 1, worker);
    }
    assert.deepEqual(
      [taskSignal(), isInsideWorker(), workerNumber()],
      [undefined, false, undefined],
    );
  });
}
