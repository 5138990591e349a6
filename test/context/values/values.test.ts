// Random values, through the encoder that a pool uses: each arrives as it was, or is refused with a code, the
// path and a way out. A campaign: `MANYCORE_RUNS=1000000 npm test -- context/values`.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ByteReader, Codec } from '../../../src/channels/index.js';
import { createExporter, createImporter } from '../../../src/context/index.js';
import { describe, isGoodRefusal } from '../../support/describe.js';
import { random, seeded } from '../../support/index.js';
import { makeValue } from '../../support/values.js';

const runs = Number(process.env['MANYCORE_RUNS'] ?? 1000);

/** One end that sends and one that receives, in one process and without a channel. */
function ends(): (value: unknown) => Promise<unknown> {
  const exporter = createExporter();
  const importer = createImporter({ exporter: createExporter() });
  const known = new Set<number>();
  const codec = new Codec({
    blocks: undefined,
    slow: {
      encode: (value) => ({ ...exporter.exportValue(value, 'the arguments'), blocks: [] }),
      decode: (bytes) => importer.importValue(bytes),
    },
  });
  return async (value) => {
    const packed = codec.pack(value);
    for (const id of packed.definitions) {
      if (!known.has(id)) await importer.define(id, exporter.definition(id));
      known.add(id);
    }
    return codec.read(new ByteReader(Buffer.from(packed.bytes)));
  };
}

test('a random value arrives as it was, or is refused with a path and a way out', async (t) => {
  const chance = random(t);
  const send = ends();
  const refused = new Map<string, number>();
  for (let run = 0; run < runs; run += 1) {
    const seed = chance.integer(0, 2 ** 32);
    const value = [makeValue(seeded(seed))];
    const before = describe(value);
    let arrived: unknown;
    try {
      arrived = await send(value);
    } catch (error) {
      assert.ok(isGoodRefusal(error), `seed ${seed}: ${error}`);
      const what = /it is [^:;]*/.exec(String(error))?.[0] ?? String(error);
      refused.set(what, (refused.get(what) ?? 0) + 1);
      continue;
    }
    assert.equal(describe(arrived), before, `seed ${seed}`);
    assert.equal(describe(value), before, `seed ${seed}: what was sent is as it was`);
  }
  t.diagnostic(JSON.stringify([...refused]));
  assert.ok(refused.size > 0 && [...refused.values()].reduce((sum, n) => sum + n) < runs / 2);
});
