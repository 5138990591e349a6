// Rows of the scoreboard on their way from a process, which writes them, to the supervisor, which reads them.

import { boardAt, type Row } from '../shared/board.js';

/** Interval at which a process writes and sends its rows, in ms. */
export const writeEveryMs = 250;

/** The words that are copied, in the order in which they travel. */
const copied = [
  boardAt.state,
  boardAt.idleWrittenAt,
  boardAt.idleMs,
  boardAt.open,
  boardAt.placed,
  boardAt.listens,
  boardAt.limit,
  boardAt.inFlight,
  boardAt.requests,
  boardAt.kibWritten,
  boardAt.speaksHttp,
  boardAt.lagMs,
] as const;

/** Returns the words of the rows that are in use, each after the index of its loop. */
export function wordsOf(rows: readonly Row[]): number[][] {
  return rows.flatMap((row, index) =>
    row.state === 'free' && row.get(boardAt.placed) === 0
      ? []
      : [[index, ...copied.map((at) => row.get(at))]],
  );
}

/** Writes the words of rows that have arrived; the other rows of the process are cleared. */
export function writeWords(rows: readonly Row[], words: readonly (readonly number[])[]): void {
  const arrived = new Map(words.map(([index = -1, ...own]) => [index, own]));
  for (const [index, row] of rows.entries()) {
    const own = arrived.get(index) ?? [];
    for (const [nth, at] of copied.entries()) row.set(at, own[nth] ?? 0);
  }
}
