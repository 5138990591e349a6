// A map over an input without an end takes no more memory the longer it runs.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { pmap } from '../../src/public.js';
import { openPool } from '../pool/calls/ways.js';
import { isFew } from '../support/index.js';

const mib = 2 ** 20;
const items = isFew ? 300_000 : 1_000_000;

setFlagsFromString('--expose-gc');
const collect: unknown = runInNewContext('gc');

/** Live heap of this process, in MiB. */
function heapMiB(): number {
  if (typeof collect === 'function') collect();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / mib;
}

async function* endless(): AsyncGenerator<{ id: number; name: string }> {
  for (let id = 0; ; id += 1) yield { id, name: `item ${id}` };
}

test(`memory stays what it is over ${items} items of an endless async input`, async (t) => {
  const pool = openPool(t, { size: 2 });
  let taken = 0;
  const sizes: number[] = [];
  for await (const size of pmap.stream(endless(), ({ name }) => name.length, { pool })) {
    assert.ok(size > 5);
    taken += 1;
    if (taken % (items / 10) === 0) sizes.push(heapMiB());
    if (taken === items) break;
  }
  // Memory in flight varies with the load of the machine; leaked memory stays.
  const grown = Math.min(...sizes.slice(-4)) - Math.max(...sizes.slice(0, 3));
  assert.ok(
    grown < 8,
    `${grown.toFixed(1)} MiB more after some ${0.7 * items} items: ${sizes.join(' ')}`,
  );
});
