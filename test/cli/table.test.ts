// Tables of `manycore list` and `manycore status` in terminals of every width.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { columns } from '../../src/cli/commands/serve/table.js';

const word = fc.stringMatching(/^[a-z]{1,14}$/);

test('no line is wider than the terminal, and no cell is lost', () => {
  const tables = fc
    .integer({ min: 2, max: 14 })
    .chain((count) =>
      fc.array(fc.array(word, { minLength: count, maxLength: count }), { minLength: 1 }),
    );
  fc.assert(
    fc.property(tables, fc.integer({ min: 30, max: 130 }), (rows, width) => {
      const of = (rows[0] ?? []).map((_, at) => ({
        head: `${at}`,
        text: (row: readonly string[]) => row[at] ?? '',
        isText: at % 2 === 0,
      }));
      const lines = columns(of, rows, 1, width);
      for (const line of lines) assert.ok(line.length <= width, line);
      const cells = lines.flatMap((line) => line.split(/ +/).filter((cell) => cell !== ''));
      const tablesMade = lines.filter((line) => line === '').length + 1;
      const expected = rows.flatMap((row) => [...row, ...Array(tablesMade - 1).fill(row[0])]);
      const heads = [...of.map(({ head }) => head), ...Array(tablesMade - 1).fill('0')];
      assert.deepEqual(cells.sort(), [...expected, ...heads].sort());
    }),
  );
});

test('one table is made where it fits, and where there is no terminal', () => {
  const of = [
    { head: 'name', text: (name: string) => name, isText: true },
    { head: 'size', text: (name: string) => String(name.length) },
  ];
  const expected = ['name        size', 'a              1', 'long names    10'];
  assert.deepEqual(columns(of, ['a', 'long names'], 1, 16), expected);
  assert.deepEqual(columns(of, ['a', 'long names'], 1, Infinity), expected);
});
