// Private members cannot be copied: what has some is refused on every road, also where its class is not
// above it (a constructor returned it, its prototype was changed), and where V8's serializer alone would do.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCopy } from '../../../src/bus/delivery/copy.js';
import { hasCode } from '../../../src/errors.js';
import { type Pool, pmap } from '../../../src/public.js';
import { ordinaryValues, privateValues } from '../../support/private-values.js';
import { openPool, type Way, ways } from '../calls/ways.js';

const copy = createCopy();

const roads: Readonly<Record<string, (pool: Pool, make: () => unknown) => unknown>> = {
  argument: (pool, make) => pool.run((value) => typeof value, make()),
  capture: (pool, make) => {
    const value = make();
    return pool.run(() => typeof value);
  },
  result: (pool, make) => pool.run(() => ({ list: [make()] })),
  item: (pool, make) => pmap([1, make()], (value) => typeof value, { pool }),
  body: (_pool, make) => copy([make()]),
};

/** Roads that have a worker of this kind in them; all of them once. */
const roadsOf = (way: Way) =>
  Object.entries(roads).filter(([road]) => way === ways[0] || road === 'result');

for (const way of ways) {
  test(`${way.name}: private members are refused on every road`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    for (const [title, make] of Object.entries(privateValues)) {
      for (const [road, take] of roadsOf(way)) {
        await assert.rejects(
          async () => await take(pool, make),
          (error) => {
            assert.ok(error instanceof Error && hasCode(error, 'TRANSFER_UNSUPPORTED'));
            assert.match(
              error.message,
              /private members.*(?:inside the function|return plain data)|make it inside/,
            );
            return true;
          },
          `${title} as ${road}`,
        );
      }
    }
  });

  test(`${way.name}: what has no private members travels`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    for (const [title, make] of Object.entries(ordinaryValues)) {
      for (const [road, take] of roadsOf(way)) {
        await assert.doesNotReject(async () => await take(pool, make), `${title} as ${road}`);
      }
    }
  });
}
