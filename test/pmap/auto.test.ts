// What `channel: 'auto'` may map here, without any host: items that cost more to send than to map, and
// only where nobody could tell the difference.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { pmap } from '../../src/index.js';
import { poolFor } from '../../src/pool/index.js';
import { count } from './ways.js';

after(async () => poolFor('auto')?.destroy());

const long = 'x'.repeat(4096);
const texts = count(4000).map((index) => `${index}${long}`);

test('texts that cost more to send than to map are mapped here, and stats() says why', async () => {
  const map = pmap(texts, (text) => (text.length > 0 ? process.pid : 0));
  const pids = new Set(await map);
  assert.ok(pids.has(process.pid), 'nothing was mapped here');
  assert.equal(map.stats().channel, 'inline');
  assert.match(map.stats().why, /^an item takes .+ µs to map and .+ µs to send$/);
});

test('items that a mapper could change are not mapped here', async () => {
  const items = texts.map((text) => ({ text }));
  const pids = new Set(await pmap(items, ({ text }) => (text.length > 0 ? process.pid : 0)));
  assert.ok(!pids.has(process.pid), 'an object was mapped here');
});

test('a mapper that captured what can change does not map here', async () => {
  const captured = { least: 0 };
  const pids = new Set(
    await pmap(texts, (text) => (text.length > captured.least ? process.pid : 0)),
  );
  assert.ok(!pids.has(process.pid), 'it was called here');
});
