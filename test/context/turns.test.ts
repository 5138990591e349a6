// Many calls in one turn of the event loop: only the arguments of the last one are held until the turn is
// over.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createExporter } from '../../src/context/index.js';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

class Row {
  readonly cells = Array.from({ length: 100_000 }, (_, at) => at / 2);
}

const calls = 200;
const mib = 2 ** 20;

test('the arguments of the calls of one turn are not held', () => {
  const exporter = createExporter();
  const fn = (row: Row): number => row.cells.length;
  const bytesOfRow = new Row().cells.length * 8;
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let call = 0; call < calls; call += 1) {
    exporter.exportFunction(fn);
    exporter.exportValue([new Row()], 'the arguments');
  }
  collect();
  const grown = process.memoryUsage().heapUsed - before;
  assert.ok(grown < (calls * bytesOfRow) / 3, `${Math.round(grown / mib)} MiB`);
});

test('a function is not held once the turn of its last call is over', async () => {
  const exporter = createExporter();
  const call = (): WeakRef<object> => {
    const table = new Row();
    const fn = (): number => table.cells.length;
    exporter.exportFunction(fn);
    exporter.exportFunction(fn);
    return new WeakRef(fn);
  };
  const calm = (): WeakRef<object> => {
    const fn = (value: number): number => value + 1;
    exporter.exportFunction(fn);
    exporter.exportFunction(fn);
    return new WeakRef(fn);
  };
  for (const make of [call, calm]) {
    const held = make();
    await new Promise((resolve) => setImmediate(resolve));
    collect();
    assert.equal(held.deref(), undefined, make.name);
  }
});
