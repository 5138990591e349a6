// Places in messages and stacks of code that a tool compiled and runs by itself, as test runners do. The
// lines are those that the user wrote, and imports have the name of their module.

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import vm from 'node:vm';
import { openPool } from '../../pool/calls/ways.js';

/** Line 2 of the compiled text is line 5 of the user's file, and so on; columns are not mapped. */
const map = { version: 3, sources: ['user.ts'], names: [], mappings: ';AAIA;AACA;AACA;AACA' };
const url = `data:application/json;charset=utf-8;base64,${Buffer.from(JSON.stringify(map)).toString('base64')}`;

const head = '(async (__vite_ssr_import__) => {';
const text = `const first = () => conf.ref;
const __vite_ssr_import_0__ = await __vite_ssr_import__("./conf.js");
const conf = { ref: new WeakRef({}) };
const fail = () => { throw new RangeError('failed ' + typeof fail); };
return { first, own: () => conf.ref, imported: () => __vite_ssr_import_0__.inner, fail };
//# sourceMappingURL=${url}
})`;

async function load(): Promise<Record<string, () => unknown>> {
  const run = vm.runInThisContext(head + text, {
    filename: 'file:///app/user.ts',
    columnOffset: -head.length, // as test runners do, for lines without their head
  });
  return run(async () => ({ inner: { ref: new WeakRef({}) } }));
}

const cases: [name: string, path: RegExp][] = [
  ['first', /function first \(user\.ts:1:15\) → variable conf\.ref$/],
  ['own', /function own \(user\.ts:8:1\) → variable conf\.ref$/],
  ['imported', /function imported \(user\.ts:8:1\) → import of '\.\/conf\.js'\.inner\.ref$/],
];

test('a refusal names the line that the user wrote, and an import by its module', async (t) => {
  const pool = openPool(t, { size: 1 });
  const functions = await load();
  for (const [name, path] of cases) {
    const fn = functions[name];
    assert.ok(fn !== undefined);
    await assert.rejects(pool.run(fn), { code: 'TRANSFER_UNSUPPORTED', message: path });
  }
  const { fail } = functions;
  assert.ok(fail !== undefined);
  await assert.rejects(pool.run(fail), ({ stack }: Error) => {
    assert.match(stack ?? '', /^RangeError: failed function\n {4}at fail \(.*user\.ts:7:1\)\n/);
    return true;
  });
});

test('no text in the package is taken for a source map of its file', () => {
  const folder = new URL('../../../bundle/', import.meta.url);
  const files = readdirSync(folder).filter((name) => /\.c?js$/.test(name));
  assert.ok(files.length > 0);
  for (const name of files) {
    const text = readFileSync(new URL(name, folder), 'utf8');
    const maps = text.match(/[#@]\s*sourceMappingURL=\S*/g) ?? [];
    assert.deepEqual(
      maps.filter((each) => !each.endsWith(`=${name}.map`)),
      [],
      name,
    );
  }
});

test('frames of a file that a worker loads by itself keep their lines, others are mapped', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-places-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = pathToFileURL(join(folder, 'user.mjs')).href;
  const native = "export const fail = () => { throw new RangeError('in the file'); };";
  writeFileSync(new URL(file), `\n\n\n\n${native}\n`);
  const ofUser = url.replace(/[^,]*$/, (map) => {
    const json = Buffer.from(map, 'base64').toString().replace('user.ts', 'user.mjs');
    return Buffer.from(json).toString('base64');
  });
  const made: unknown = vm.runInThisContext(
    `(() => {
      const fail = () => { throw new RangeError('made again'); };
      return { fail, load: async (url) => (await import(url)).fail(), make: () => new TypeError('made') };
//# sourceMappingURL=${ofUser}
    })()`,
    { filename: file },
  );
  assert.ok(typeof made === 'object' && made !== null);
  const { fail, load, make } = Object(made);
  const pool = openPool(t, { size: 1 });
  const stackOf = (body: () => unknown): Promise<string> =>
    pool.run(body).then(
      () => assert.fail('it threw nothing'),
      (error: Error) => error.stack ?? '',
    );
  assert.match(await stackOf(fail), /at .*user\.mjs:5:1\)?\n/);
  const both = await stackOf(() => load(file));
  assert.match(both, /at .*user\.mjs:5:35\)?\n.*user\.mjs:6:1\)?\n/);
  assert.match(await stackOf(fail), /at .*user\.mjs:5:1\)?\n/);
  assert.doesNotMatch(both, /manycore:/);

  // An error that is a result, by itself and beside others.
  const given: Error = await pool.run(make);
  assert.match(given.stack ?? '', /at make \(.*user\.mjs:6:1\)/);
  assert.doesNotMatch(given.stack ?? '', /manycore:/);
  const { list } = await pool.run(() => {
    const dom = new DOMException('here');
    return { list: [make(), dom, AggregateError([make()]).errors[0]] };
  });
  for (const { stack } of list) assert.doesNotMatch(stack ?? '', /manycore:/);
  // In a worker that a task started, which has no map either.
  const library = new URL('../../../src/public.js', import.meta.url).href;
  const far = await stackOf(async () => {
    const { Pool } = await import(library);
    const inner = new Pool({ size: 1 });
    try {
      return await inner.run(fail);
    } finally {
      await inner.close();
    }
  });
  assert.match(far, /at fail \(.*user\.mjs:5:1\)\n/);
});
