// Rows of the scoreboard as a process sends them and the supervisor reads them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { wordsOf, writeWords } from '../../../src/serve/portable/rows.js';
import { boardAt, createBoard, rowsOf } from '../../../src/serve/shared/board.js';

test('rows in use arrive as they are, and others are cleared', () => {
  const [, ours = []] = rowsOf(createBoard(2, 3));
  const [, theirs = []] = rowsOf(createBoard(2, 3));
  const [first, , third] = ours;
  assert.ok(first && third);
  first.state = 'ready';
  first.set(boardAt.open, 3);
  first.set(boardAt.idleMs, 2 ** 32 - 1);
  third.state = 'draining';
  third.set(boardAt.placed, 9);
  theirs[1]?.set(boardAt.open, 77);
  writeWords(theirs, wordsOf(ours));
  assert.deepEqual(
    theirs.map((row) => [row.state, row.get(boardAt.open), row.get(boardAt.placed)]),
    [
      ['ready', 3, 0],
      ['free', 0, 0],
      ['draining', 0, 9],
    ],
  );
  assert.equal(theirs[0]?.get(boardAt.idleMs), 2 ** 32 - 1);
});

test('rows of a damaged message change no row beyond those of the process', () => {
  const board = createBoard(2, 2);
  const [mine = [], other = []] = rowsOf(board);
  writeWords(mine, [[], [7, 2], [0, 2], [1, 1, 2, 3]]);
  assert.equal(mine[0]?.state, 'ready');
  assert.equal(mine[1]?.state, 'starting');
  assert.deepEqual(
    other.map(({ state }) => state),
    ['free', 'free'],
  );
});
