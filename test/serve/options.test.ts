// Options of `serve`: checks and defaults.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fillServeOptions } from '../../src/serve/options.js';
import { ownerOf } from '../../src/serve/supervisor/owner.js';

test('users and groups are names or numbers, which need no name', () => {
  assert.deepEqual(ownerOf('root', undefined), { uid: 0, gid: 0 });
  assert.deepEqual(ownerOf('0', 'root'), { uid: 0, gid: 0 });
  assert.deepEqual(ownerOf(0, undefined), { uid: 0, gid: 0 });
  assert.deepEqual(ownerOf(undefined, 0), { uid: undefined, gid: 0 });
  assert.deepEqual(ownerOf(123_456_789, '987654321'), { uid: 123_456_789, gid: 987_654_321 });
  assert.equal(ownerOf(undefined, undefined), undefined);
  assert.throws(() => ownerOf(123_456_789, undefined), { code: 'OPTION_INVALID' });
  assert.throws(() => ownerOf('nobody-at-all', 0), { code: 'OPTION_INVALID' });
});

test('names of servers are as clients write them, also addresses', () => {
  const { serverNames } = fillServeOptions({
    serverNames: ['A.example.', '::1', '[::2]', '10.0.0.1'],
  });
  assert.deepEqual(serverNames, ['a.example', '[::1]', '[::2]', '10.0.0.1']);
});

test('PORT counts where it is a port', (t) => {
  const before = process.env['PORT'];
  t.after(() => {
    if (before === undefined) delete process.env['PORT'];
    else process.env['PORT'] = before;
  });
  for (const [text, port] of [
    ['8080', 8080],
    ['/run/app.sock', 3000],
    ['', 3000],
  ] as const) {
    process.env['PORT'] = text;
    assert.equal(fillServeOptions().port, port);
  }
});
