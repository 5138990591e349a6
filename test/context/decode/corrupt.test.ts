// Bytes come from another process, which may be broken. Any bytes give a value or TRANSFER_CORRUPT, never a
// crash of this process. Random tests print their seed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createExporter, createImporter } from '../../../src/context/index.js';
import { format, read, write } from '../../../src/context/wire.js';
import { CodedError, hasCode } from '../../../src/errors.js';
import { withoutNativeCapture } from '../../support/closures.js';

const rounds = 4000;
const seed = Number(process.env['SEED'] ?? Date.now() % 1e9);

/** mulberry32 */
function randomFrom(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

class Point {
  constructor(readonly_: number) {
    this.x = readonly_;
  }
  x: number;
}
let changing = 1;
const shared = new Float64Array([1, 2]);
const samples: readonly unknown[] = [
  { a: [1, 'two', { three: 3n }], d: new Date(0), m: new Map([[1, new Set([2])]]) },
  [new Point(1), new Point(2), Symbol.for('x'), Symbol.iterator, new URL('file:///a')],
  {
    fn: () => changing + shared.length,
    get later() {
      return 1;
    },
    [Symbol('own')]: new Error('e'),
  },
  [shared, new DataView(shared.buffer), Buffer.from('bytes'), new Uint8Array(8)],
  Object.freeze({ bound: Math.max.bind(null, 1), alias: Array.prototype.map }),
];
changing = 2;

function only(error: unknown): void {
  const isOurs = error instanceof CodedError && error.code.startsWith('TRANSFER_');
  assert.ok(isOurs, `seed ${seed}: ${error instanceof Error ? error.stack : String(error)}`);
}

function mutate(bytes: Uint8Array, random: () => number): Uint8Array {
  const copy = Buffer.from(bytes);
  const kind = random();
  if (kind < 0.2) return copy.subarray(0, Math.floor(random() * copy.length));
  const changes = 1 + Math.floor(random() * 4);
  for (let i = 0; i < changes; i += 1) {
    const at = Math.floor(random() * copy.length);
    copy[at] =
      kind < 0.6 ? Math.floor(random() * 256) : (copy[at] ?? 0) ^ (1 << Math.floor(random() * 8));
  }
  return copy;
}

test(`damaged values end in TRANSFER_ errors or values (seed ${seed})`, async () => {
  const exporter = createExporter();
  const importer = createImporter({ exporter: createExporter() });
  const snapshots = samples.map((sample) => exporter.exportValue(sample, 'the sample'));
  for (const { definitions } of snapshots) {
    for (const id of definitions) await importer.define(id, exporter.definition(id));
  }
  const random = randomFrom(seed);
  let refused = 0;
  for (let round = 0; round < rounds; round += 1) {
    const { bytes } = snapshots[round % snapshots.length] ?? { bytes: new Uint8Array() };
    try {
      importer.importValue(mutate(bytes, random));
    } catch (error) {
      only(error);
      refused += 1;
    }
  }
  assert.ok(refused > rounds / 4, `only ${refused} of ${rounds} were refused`);
});

/** The last of some exports of functions that differ in their values alone: a form and its state. */
function exportForm() {
  const exporter = createExporter();
  const twice = (value: number): number => value * 2;
  const make = (turn: number) => () => [twice(changing), turn];
  for (let turn = 0; turn < 5; turn += 1) exporter.exportFunction(make(turn));
  const snapshot = exporter.exportFunction(make(5));
  const definition = Object(read(exporter.definition(snapshot.id), undefined).value);
  assert.equal(definition.kind, 'form');
  return { exporter, snapshot, definition };
}

function exportGraph() {
  const exporter = createExporter();
  return { exporter, snapshot: exporter.exportFunction(() => [changing, shared, Point]) };
}

const skip = withoutNativeCapture();

for (const [what, skipped, make] of [
  ['a graph', false, exportGraph],
  ['a form', skip, exportForm],
] as const) {
  test(`damaged definitions and states of ${what} end the same way (seed ${seed})`, {
    skip: skipped,
  }, () => {
    const { exporter, snapshot } = make();
    const { id, state, definitions } = snapshot;
    assert.ok(state !== undefined);
    const random = randomFrom(seed + 1);
    let refused = 0;
    for (let round = 0; round < rounds / 4; round += 1) {
      const importer = createImporter({ exporter: createExporter() });
      try {
        for (const each of definitions) {
          const bytes = exporter.definition(each);
          void importer.define(each, random() < 0.5 ? bytes : mutate(bytes, random));
        }
        importer.importFunction(id, random() < 0.5 ? state : mutate(state, random));
      } catch (error) {
        only(error);
        refused += 1;
      }
    }
    assert.ok(refused > rounds / 40 && refused < rounds / 4, `${refused} were refused`);
  });
}

for (const slot of [-1, 0.5, 3, 2 ** 32 - 2, Number.NaN, 'length']) {
  test(`a form with the slot ${slot} is TRANSFER_CORRUPT`, { skip }, () => {
    const { exporter, snapshot, definition } = exportForm();
    const { state, definitions } = snapshot;
    const importer = createImporter({ exporter: createExporter() });
    for (const each of definitions) void importer.define(each, exporter.definition(each));
    const fixed = [[slot, ...definition.fixed[0].slice(1)]];
    void importer.define(99, write(format.definition, { ...definition, fixed }, undefined).bytes);
    assert.throws(() => importer.importFunction(99, state), { code: 'TRANSFER_CORRUPT' });
  });
}

for (const [title, bytes] of [
  ['nothing', Buffer.alloc(0)],
  ['zeros', Buffer.alloc(64)],
  ['only a header', Buffer.from([0xff, 0x0f])],
  ['a forged array length', Buffer.from([0xff, 0x0f, 0x00, 0x41, 0xff, 0xff, 0xff, 0xff, 0x0f])],
  ['a forged string length', Buffer.from([0xff, 0x0f, 0x00, 0x22, 0xff, 0xff, 0xff, 0xff, 0x0f])],
  [
    'a forged buffer length',
    Buffer.from([0xff, 0x0f, 0x00, 0x5c, 0x03, 0x00, 0xff, 0xff, 0xff, 0xff, 0x0f]),
  ],
  ['a shared buffer nobody sent', Buffer.from([0xff, 0x0f, 0x00, 0x75, 0x05])],
  ['an unknown format', Buffer.from([0xff, 0x0f, 0x09, 0x30])],
] as const) {
  test(`${title} is TRANSFER_CORRUPT`, () => {
    const importer = createImporter({ exporter: createExporter() });
    const isCorrupt = (error: unknown) => hasCode(error, 'TRANSFER_CORRUPT');
    assert.throws(() => importer.importValue(bytes), isCorrupt);
    assert.throws(() => importer.define(1, bytes), isCorrupt);
    assert.throws(() => importer.importFunction(1, bytes), isCorrupt);
  });
}

test('a function that was never defined is TRANSFER_CORRUPT', () => {
  const importer = createImporter({ exporter: createExporter() });
  assert.throws(() => importer.importFunction(5, undefined), { code: 'TRANSFER_CORRUPT' });
});
