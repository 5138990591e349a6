// Lines of access logs: whatever a client sends stays in one line, and in its field.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type AccessEntry, formatAccess } from '../../src/serve/output/access-line.js';

const entry: AccessEntry = {
  timeMs: Date.UTC(2026, 10, 29, 18, 5, 9, 123),
  name: 'shop',
  process: 1,
  loop: 2,
  client: '::1',
  method: 'GET',
  path: '/a?b',
  version: '1.1',
  status: 200,
  bytes: 120,
  durationMs: 1.23456,
  waitMs: 3,
  isAborted: false,
};
const nothing = { client: undefined, status: undefined, bytes: undefined, waitMs: undefined };

test('the common format is that of Apache, then duration, loop and wait', () => {
  assert.equal(
    formatAccess(entry, 'common'),
    '::1 - - [29/Nov/2026:18:05:09 +0000] "GET /a?b HTTP/1.1" 200 120 1.235 1.2 3\n',
  );
  assert.equal(
    formatAccess({ ...entry, ...nothing, isAborted: true }, 'common'),
    '- - - [29/Nov/2026:18:05:09 +0000] "GET /a?b HTTP/1.1" 499 - 1.235 1.2 -\n',
  );
});

test('an address of IPv4 is one over a socket of IPv6, too', () => {
  for (const [client, written] of [
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['::ffff:a:1', '::ffff:a:1'],
    ['10.0.0.1', '10.0.0.1'],
  ] as const) {
    assert.ok(formatAccess({ ...entry, client }, 'common').startsWith(`${written} - - [`));
  }
});

test('an object leaves out what is unknown', () => {
  const { client, bytes, ...known } = JSON.parse(formatAccess({ ...entry, ...nothing }, 'json'));
  assert.deepEqual(
    [client, bytes, known.status, 'waitMs' in known],
    [undefined, undefined, 499, false],
  );
  assert.equal(known.time, '2026-11-29T18:05:09.123Z');
});

test('no method or path ends the line or its field', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (method, path) => {
      const line = formatAccess({ ...entry, method, path }, 'common');
      assert.match(line, /^[ -~]+\n$/);
      assert.match(line, /^[^"]*"(?:[^"\\]|\\["\\]|\\x[0-9a-f]{2})*" 200 120 1\.235 1\.2 3\n$/);
      const json = formatAccess({ ...entry, method, path }, 'json');
      assert.equal(json.indexOf('\n'), json.length - 1);
      assert.equal(JSON.parse(json).path, path);
    }),
  );
});
