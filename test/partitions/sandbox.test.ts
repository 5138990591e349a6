// Calls, results and ends of workers in sandboxes: what they mean for processes they mean here, too.

import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { dirname } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { hasCode } from '../../src/errors.js';
import { Pool, pmap } from '../../src/public.js';
import { isFew, waitFor } from '../support/index.js';
import { groups, sandboxPool, sandboxProcesses, skip } from './support.js';

test('a call has its captures and arguments, and its result comes back', { skip }, async (t) => {
  const pool = sandboxPool(t);
  const factor = 7;
  const byName = new Map([['a', { deep: [1n, new Date(5)] }]]);
  assert.equal(await pool.run((x: number) => x * factor, 6), 42);
  assert.deepEqual(await pool.run(() => byName), byName);
  const bytes = await pool.run(() => Buffer.alloc(4 * 2 ** 20, 7));
  assert.ok(bytes.length === 4 * 2 ** 20 && bytes.every((byte) => byte === 7));
  assert.deepEqual(await pmap([1, 2, 3], (x) => x * factor, { pool }), [7, 14, 21]);
  const items: number[] = [];
  const stream = await pool.run(function* () {
    for (let at = 0; at < 100; at += 1) yield at;
  });
  for await (const item of stream) items.push(item);
  assert.deepEqual(
    items,
    Array.from({ length: 100 }, (_, at) => at),
  );
});

test('an error comes as its name, message, stack and code', { skip }, async (t) => {
  const pool = sandboxPool(t);
  await assert.rejects(
    pool.run(() => {
      class OwnError extends RangeError {
        override name = 'OwnError';
        code = 'OWN';
        help = () => 'code';
      }
      throw new OwnError('as thrown');
    }),
    (error) => {
      assert.ok(error instanceof RangeError);
      assert.equal(Object.getPrototypeOf(error), RangeError.prototype);
      assert.equal(error.name, 'OwnError');
      assert.equal(error.message, 'as thrown');
      assert.ok('code' in error && error.code === 'OWN');
      assert.ok(!('help' in error) || typeof error.help !== 'function');
      assert.match(error.stack ?? '', /sandbox\.test/);
      return true;
    },
  );
});

const results: Readonly<Record<string, () => unknown>> = {
  'a function': () => () => 1,
  'a class': () => class {},
  'a function in data': () => [{ at: [() => 1] }],
  'an instance of a class': () => new (class Own {})(),
  'a built-in function': () => Math.max,
  'a module': () => import('node:fs'),
  'a symbol': () => Symbol('own'),
};
for (const [name, make] of Object.entries(results)) {
  test(`${name} is no result, and the sandbox goes on`, { skip }, async (t) => {
    const pool = sandboxPool(t);
    await assert.rejects(pool.run(make), (error) => hasCode(error, 'PARTITION_CODE'));
    assert.equal(await pool.run(() => 1), 1);
    assert.equal(pool.stats().workers.length, 1);
  });
}

/** Values that the writer of functions does not meet: the specials of what was written are checked. */
const refusedLate: Readonly<Record<string, () => unknown>> = {
  'a built-in object': () => [Math],
  'an AsyncLocalStorage': () => new AsyncLocalStorage(),
  'an object of arguments': argumentsOf,
  'a million maps, of which each takes many times its bytes': () =>
    Array.from({ length: 1_000_000 }, () => new Map()),
};
for (const [name, make] of Object.entries(refusedLate)) {
  test(`${name} is refused in the sandbox, which goes on`, { skip }, async (t) => {
    const pool = sandboxPool(t, { memoryMb: 1024 });
    await assert.rejects(pool.run(make), (error) => {
      assert.ok(hasCode(error, 'PARTITION_CODE') || hasCode(error, 'TRANSFER_CORRUPT'));
      return true;
    });
    assert.equal(await pool.run(() => 1), 1);
    assert.equal(pool.stats().exitedWorkers, 0);
  });
}

function argumentsOf(): unknown {
  // biome-ignore lint/complexity/noArguments: an object that only this word makes
  return arguments;
}

test('a limit that ends a sandbox is named, and another takes its place', { skip }, async (t) => {
  const pool = sandboxPool(t, { memoryMb: 128 });
  const tooMuch = pool.run(() => {
    const all: Buffer[] = [];
    for (;;) all.push(Buffer.alloc(2 ** 20, 1));
  });
  await assert.rejects(tooMuch, (error) => {
    assert.ok(hasCode(error, 'WORKER_EXITED'), String(error));
    assert.match(String(error), /memory limit of 128 MiB \(memoryMb\)/);
    return true;
  });
  assert.equal(await pool.run(() => 2), 2);
});

test('a folder with the files of node or manycore cannot be written', { skip }, async (t) => {
  for (const write of [dirname(process.execPath), '/', dirname(fileURLToPath(import.meta.url))]) {
    const pool = sandboxPool(t, { write: [write] });
    await assert.rejects(
      pool.run(() => 1),
      (error) => {
        assert.match(String(error), /worker\.write is .*: it must be apart from/);
        return true;
      },
    );
  }
});

const fours = isFew ? 5 : 25;
test(`nothing is left of ${4 * fours} sandboxes`, { skip }, async () => {
  for (let round = 0; round < fours; round += 1) {
    const pool = new Pool({ size: 4, worker: { kind: 'sandbox' } });
    await pool.warm();
    assert.deepEqual(await pool.runOnEach(() => process.pid), [2, 2, 2, 2]);
    await (round % 2 === 0 ? pool.close() : pool.destroy());
  }
  await waitFor(() => sandboxProcesses().length === 0 && groups().length === 0);
});
