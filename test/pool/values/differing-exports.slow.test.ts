// Modules that export less in a worker than where the call was made: the refusal names the module and the export.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Pool, pmap } from '../../../src/public.js';
import { openPool } from '../calls/ways.js';
import { programFolder } from '../programs.js';

const text = `let count = 1;
const counted = () => count++;
if (process.env.MANYCORE_TEST_DIFFERS === undefined) {
  exports.val = () => counted();
  exports.V = class V { a() { return 1 } };
  exports.text = () => counted();
} else exports.text = 'text';`;

interface Module {
  readonly val: () => number;
  readonly text: () => number;
  readonly V: new () => { a(): number };
}

const uses: Readonly<Record<string, readonly [string, (pool: Pool, module: Module) => unknown]>> = {
  'the function that is called': ['no val', (pool, { val }) => pool.run(val)],
  'a text where a function was': ['a string as text', (pool, { text }) => pool.run(text)],
  'the mapper of a map': ['no val', (pool, { val }) => pmap([1, 2], val, { pool })],
  'a function that is bound': ['no val', (pool, { val }) => pool.run(val.bind(undefined))],
  'the class of a captured instance': [
    'no V',
    (pool, { V }) => {
      const instance = new V();
      return pool.run(() => instance.a());
    },
  ],
  'the class of an argument': ['no V', (pool, { V }) => pool.run((given) => given.a(), new V())],
  'the class that another extends': [
    'no V',
    (pool, { V }) => {
      class Own extends V {}
      return pool.run(() => new Own().a());
    },
  ],
  'the class that the class of an instance extends': [
    'no V',
    (pool, { V }) => {
      class Own extends V {}
      const instance = new Own();
      return pool.run(() => instance.a());
    },
  ],
};

for (const worker of ['process', 'thread'] as const) {
  for (const [what, [has, call]] of Object.entries(uses)) {
    test(`${worker}: ${what} is not there in the worker`, async (t) => {
      const file = join(programFolder(t, { 'differs.cjs': text }), 'differs.cjs');
      const module: Module = createRequire(import.meta.url)(file);
      const pool = openPool(t, { size: 1, worker, env: { MANYCORE_TEST_DIFFERS: '1' } });
      const thrown: unknown = await Promise.resolve(call(pool, module)).then(
        () => undefined,
        (error: unknown) => error,
      );
      assert.ok(thrown instanceof Error, String(thrown));
      const found =
        'cause' in thrown && Reflect.get(thrown, 'code') === 'MAP_ITEM_FAILED'
          ? thrown.cause
          : thrown;
      assert.equal(Reflect.get(Object(found), 'code'), 'TRANSFER_IMPORT_FAILED', String(found));
      const message = String(Reflect.get(Object(found), 'message'));
      assert.ok(message.includes(`differs.cjs has ${has} on the receiving side`), message);
      assert.equal(await pool.run(() => 2), 2);
    });
  }
}
