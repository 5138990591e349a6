// Values that could be taken for more than data, returned and thrown by partitions.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertWell } from './hostile.js';
import { codeOf, sandboxPool, skip } from './support.js';

/** Values that could be taken for more than data. */
const values: readonly (readonly [
  name: string,
  make: () => unknown,
  check: (value: unknown) => boolean,
])[] = [
  [
    '__proto__',
    () => JSON.parse('{"__proto__":{"polluted":1}}'),
    (value) => Object.getPrototypeOf(value) === Object.prototype,
  ],
  [
    'constructor',
    () => ({ constructor: { prototype: { polluted: 1 } } }),
    (value) => typeof value === 'object',
  ],
  [
    'then',
    () => JSON.parse('[{"then":1,"toJSON":2,"toString":3,"valueOf":4}]'),
    (value) => JSON.stringify(value).includes('"then":1'),
  ],
  [
    'a name of no text',
    () => Object.assign(new Error('x'), { name: { a: 1 }, code: {}, stack: [1] }),
    (value) => value instanceof Error,
  ],
  [
    'itself as its cause',
    () => {
      const error = new Error('x');
      return Object.assign(error, { cause: error, errors: [error] });
    },
    (value) => value instanceof Error && value.cause === value,
  ],
  ['a frozen error', () => Object.freeze(new Error('x')), (value) => value instanceof Error],
];
for (const [name, make, check] of values) {
  test(`a value with ${name} is plain data, returned or thrown`, { skip }, async (t) => {
    const pool = sandboxPool(t);
    assert.ok(check(await pool.run(make)));
    const thrown = await pool
      .run((inside) => {
        throw inside();
      }, make)
      .catch((error: unknown) => error);
    assert.ok(check(thrown));
    await assertWell(pool);
  });
}

test('a getter is no data', { skip }, async (t) => {
  const pool = sandboxPool(t);
  const refused = pool.run(() => ({
    get a() {
      return 1;
    },
  }));
  await assert.rejects(refused, (error) => codeOf(error) === 'PARTITION_CODE');
  await assertWell(pool);
});
