// The scoreboard has one layout in two languages.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nativeBinding } from '../../src/native.js';
import { boardAt, maxSockets, rowsOf } from '../../src/serve/shared/board.js';

const native = nativeBinding();
const skip = native === undefined && 'needs the native binary';

test('TypeScript and Rust agree on the scoreboard', { skip }, () => {
  const expected = [...Object.values(boardAt), maxSockets];
  assert.deepEqual(native?.boardLayout(), expected);
});

test('a mapping of a board reads what another one writes, row by row', { skip }, () => {
  const board = native?.NativeBoard.create(2, 3);
  assert.ok(board !== undefined);
  const rows = rowsOf(board.buffer());
  assert.deepEqual(
    rows.map(({ length }) => length),
    [3, 3],
  );
  rows[1]?.[2]?.add(boardAt.open, 7);
  rows[1]?.[2]?.add(boardAt.open, -2);
  const seen = rowsOf(board.buffer())
    .flat()
    .map((row) => row.get(boardAt.open));
  assert.deepEqual(seen, [0, 0, 0, 0, 0, 5]);
  rows[1]?.[2]?.set(boardAt.requests, 3);
  rows[1]?.[2]?.clear([boardAt.open]);
  assert.equal(rows[1]?.[2]?.get(boardAt.open), 5);
  assert.equal(rows[1]?.[2]?.get(boardAt.requests), 0);
  rows[1]?.[2]?.clear();
  assert.equal(rows[1]?.[2]?.get(boardAt.open), 0);
});
