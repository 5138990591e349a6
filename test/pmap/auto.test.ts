// No item of a map runs in the caller's process unless `channel: 'inline'` is set, however cheap the items
// are: a mapper that loops for ever, or ends its process, takes one worker along and not the program.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { poolFor } from '../../src/pool/index.js';
import { pmap } from '../../src/public.js';
import { deadlineMs } from '../pool/calls/ways.js';
import { waitFor } from '../support/index.js';
import { count } from './ways.js';

after(async () => poolFor('auto')?.destroy());

const long = 'x'.repeat(4096);
const texts = count(4000).map((index) => `${index}${long}`);

test('items that cost more to send than to map are mapped in workers, and stats().why states it', async () => {
  const said = await waitFor(
    async () => {
      const map = pmap(texts, (text) => (text.length > 0 ? process.pid : 0));
      const pids = new Set(await map);
      assert.ok(!pids.has(process.pid));
      const { why } = map.stats();
      return why.includes('inline') && why;
    },
    deadlineMs,
    'it is said what would be faster',
  );
  assert.match(
    said,
    /; but an item takes .+ µs to map and .+ µs to send: channel "inline" may be faster$/,
  );
});

test('a mapper of cheap items that ends its process ends a worker alone', async () => {
  const map = pmap(texts, (text) => (text.startsWith('3999') ? process.exit(9) : 1));
  await assert.rejects(map, { code: 'WORKER_EXITED', exitCode: 9 });
});

test('a mapper of cheap items that never ends is aborted by its signal', async () => {
  const work = (text: string): number => {
    while (text.startsWith('3999'));
    return 1;
  };
  const signal = AbortSignal.timeout(100);
  await assert.rejects(pmap(texts, work, { signal }), { code: 'ABORTED' });
});
