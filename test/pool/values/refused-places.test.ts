// Values that cannot travel, on each road of values: the refusal names the place of the value there, and
// its stack has the line that put it there.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Pool, pmap, report } from '../../../src/public.js';
import { openPool } from '../calls/ways.js';

const here = /refused-places\.test\.[jt]s:\d+/;

const bad = (): object => ({ ref: new WeakRef({}) });
const captured = bad();
const readCaptured = (): unknown => captured;
/** Deeper than a stack has frames. */
const deep = (): object => {
  let value = bad();
  for (let level = 0; level < 30; level += 1) value = { value };
  return value;
};

interface Road {
  readonly call: (pool: Pool, t: TestContext) => Promise<unknown>;
  readonly names: RegExp;
}

const roads: Readonly<Record<string, Road>> = {
  'an argument': {
    call: (pool) => pool.run((value) => value, bad()),
    names: /^the arguments cannot .*\n {2}path: the arguments\[0\]\.ref$/,
  },
  'an argument that lies deep': {
    call: (pool) => pool.run((value) => value, deep()),
    names: /^the arguments cannot .*\n {2}path: the arguments\[0\](?:\.value){30}\.ref$/,
  },
  'an argument beside a capture': {
    call: (pool) => {
      const state = { count: 0 };
      return pool.run((value) => [value, state], { state, ...bad() });
    },
    names: /^the arguments cannot .*\n {2}path: the arguments\[0\]\.ref$/,
  },
  'an argument of runOnEach': {
    call: (pool) => pool.runOnEach((value) => value, bad()),
    names: /^the arguments cannot .*\n {2}path: the arguments\[0\]\.ref$/,
  },
  'a capture': {
    call: (pool) => pool.run(readCaptured),
    names: /^the function readCaptured cannot .*→ variable captured\.ref$/s,
  },
  'a result': {
    call: (pool) => pool.run(() => ({ ref: new WeakRef({}) })),
    names: /^the result cannot .*\n {2}path: the result\.ref$/,
  },
  'a report': {
    call: (pool) =>
      pool.with({ onReport: () => {} }).run(async () => report([1, { ref: new WeakRef({}) }])),
    names: /^the reported value cannot .*\n {2}path: the reported value\[1\]\.ref$/,
  },
  'a yielded item': {
    call: async (pool) => {
      const items = await pool.run(function* () {
        yield { ref: new WeakRef({}) };
      });
      return items.next();
    },
    names: /^the yielded item cannot .*\n {2}path: the yielded item\.ref$/,
  },
  'the return value of a generator': {
    call: async (pool) => {
      const items = await pool.run(async function* () {
        yield 1;
        return { ref: new WeakRef({}) };
      });
      await items.next();
      return items.next();
    },
    names: /^the result cannot .*\n {2}path: the result\.ref$/,
  },
  'an item of a map': {
    call: (pool) => pmap([1, bad(), 3], (value) => value, { pool }),
    names: /^the item cannot .*\n {2}path: the item\.ref$/,
  },
  'a capture of a mapper': {
    call: (pool) => pmap([1, 2], readCaptured, { pool }),
    names: /^the function readCaptured cannot .*→ variable captured\.ref$/s,
  },
  'a result of a mapper': {
    call: (pool) => pmap([1, 2], () => ({ ref: new WeakRef({}) }), { pool }),
    names: /^the result cannot .*\n {2}path: the result\.ref$/,
  },
  'a capture of a set-up': {
    call: async () => new Pool({ size: 1, setup: readCaptured }),
    names: /^the function readCaptured cannot .*→ variable captured\.ref$/s,
  },
  'a capture of a teardown': {
    call: async () => new Pool({ size: 1, setup: () => {}, teardown: readCaptured }),
    names: /^the function readCaptured cannot .*→ variable captured\.ref$/s,
  },
};

test('a refusal names the place of the value, and the line that put it there', async (t) => {
  const pool = openPool(t, { size: 1 });
  await pool.warm();
  for (const [road, { call, names }] of Object.entries(roads)) {
    await assert.rejects(
      async () => call(pool, t),
      (error: Error) => {
        assert.equal(Reflect.get(error, 'code'), 'TRANSFER_UNSUPPORTED', road);
        assert.match(error.message, names, road);
        const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
        assert.match(frames.join('\n'), here, `${road}: ${error.stack}`);
        assert.equal(new Set(frames).size, frames.length, `${road}: ${error.stack}`);
        assert.doesNotMatch(frames.join('\n'), /\/src\/(?:context|worker|pool)\//, road);
        return true;
      },
    );
  }
});

test('a property of an error that cannot travel is named in its stack', async (t) => {
  const pool = openPool(t, { size: 1 });
  await assert.rejects(
    pool.run(() => {
      throw Object.assign(new RangeError('kept'), { request: { ref: new WeakRef({}), id: 7 } });
    }),
    ({ message, stack }: Error) => {
      assert.equal(message, 'kept');
      assert.match(stack ?? '', /at \[left out, which cannot travel: request\.ref\]/);
      return true;
    },
  );
});
