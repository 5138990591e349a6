// Many calls in one turn of the event loop: of their arguments none is held until the turn is over, but the last.

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
