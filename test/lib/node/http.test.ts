// The HTTP client of Node (undici) loads neither with the library nor with a first call. An import of `node:http`
// brings it, and the first read of a global that is its own.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runProgram } from '../../faults/child.js';
import { readRepositoryFile } from '../../support/repository.js';

const { exports } = JSON.parse(readRepositoryFile('package.json'));

const clients = `process.moduleLoadList.filter((name) => name.endsWith('/undici'))`;

function fileOf(path: string): string {
  return JSON.stringify(new URL(`../../../../${path}`, import.meta.url));
}

for (const [name, { default: path }] of Object.entries<{ default?: string }>(exports)) {
  if (path?.endsWith('.js') !== true) continue;
  test(`the HTTP client of Node does not load with ${name}`, async (t) => {
    const program = `await import(${fileOf(path)}); console.log(JSON.stringify(${clients}));`;
    const { stdout, stderr } = await runProgram(t, program);
    assert.equal(stdout, '[]\n', stderr);
  });
}

test('the HTTP client of Node loads with no call', async (t) => {
  const program = `
    import { run } from ${fileOf('dist/bundle/index.js')};
    class Row { size = 1; }
    const rows = new Map([[new Row(), (row) => row.size]]);
    const there = await run(() => [[...rows].map(([row, sizeOf]) => sizeOf(row)), ${clients}]);
    console.log(JSON.stringify([there, ${clients}]));`;
  const { stdout, stderr } = await runProgram(t, program);
  assert.equal(stdout, '[[[1],[]],[]]\n', stderr);
});

test('the globals of the HTTP client are built in, once it is loaded', async (t) => {
  const program = `
    import { run } from ${fileOf('dist/bundle/index.js')};
    await run(() => 1);
    const { append } = FormData.prototype;
    const found = await run(() => [append === FormData.prototype.append, Response.name]);
    console.log(JSON.stringify([...found, (await run(() => Headers)) === Headers]));`;
  const { stdout, stderr } = await runProgram(t, program);
  assert.equal(stdout, '[true,"Response",true]\n', stderr);
});
