// Tables as wide as the terminal. Text is measured by its displayed width, so that wide characters break
// nothing, and control characters are replaced, so that names of programs cannot control the terminal.
// Columns that do not fit are left out, the least important first.

import displayWidth from 'string-width';

/** Style of a piece of text on a terminal with colours. */
export type Tone = 'plain' | 'head' | 'dim' | 'good' | 'warning' | 'alarm';

export interface Piece {
  readonly text: string;
  readonly tone: Tone;
}

export type Line = readonly Piece[];

export interface Column<Row> {
  readonly head: string;
  readonly text: (row: Row) => string;
  readonly tone?: (row: Row) => Tone;
  /** True: aligned left. */
  readonly isText?: boolean;
  /** True: gets the remaining width; at most one column of a table. */
  readonly isFlexible?: boolean;
  /** Order of removal, the highest first; `undefined`: never removed. */
  readonly spare?: number;
}

const gap = 2;
const minFlexible = 12;
/** Width of the mark before a chosen row. */
const markWidth = 2;
const graphemes = new Intl.Segmenter();

/** Returns the head and a line for each row. `width`: limit of the lines; `undefined`: none. */
export function tableLines<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  width: number | undefined,
  chosen?: Row,
): Line[] {
  const room = (width ?? Number.POSITIVE_INFINITY) - markWidth;
  const all = columns.map((column) => ({ column, width: widthOf(column, rows) }));
  const fitting = fit(all, room);
  const head = fitting.flatMap(({ column, width: wide }, at) => [
    ...gapBefore(at),
    { text: aligned(column.head.toUpperCase(), wide, column), tone: 'head' as const },
  ]);
  const body = rows.map((row) => [
    { text: row === chosen ? '> ' : '  ', tone: 'plain' as const },
    ...fitting.flatMap(({ column, width: wide }, at) => [
      ...gapBefore(at),
      { text: aligned(clean(column.text(row)), wide, column), tone: column.tone?.(row) ?? 'plain' },
    ]),
  ]);
  return [[{ text: '  ', tone: 'plain' }, ...head], ...body];
}

interface Sized<Row> {
  readonly column: Column<Row>;
  readonly width: number;
}

function widthOf<Row>({ head, text }: Column<Row>, rows: readonly Row[]): number {
  return Math.max(displayWidth(head), ...rows.map((row) => displayWidth(clean(text(row)))));
}

function fit<Row>(all: readonly Sized<Row>[], room: number): readonly Sized<Row>[] {
  const least = ({ column, width }: Sized<Row>): number =>
    column.isFlexible ? Math.min(width, minFlexible) : width;
  const needed = (some: readonly Sized<Row>[]): number =>
    some.reduce((sum, each) => sum + least(each), gap * (some.length - 1));
  let kept = all;
  while (needed(kept) > room) {
    const [first] = kept
      .filter(({ column }) => column.spare !== undefined)
      .sort((a, b) => (b.column.spare ?? 0) - (a.column.spare ?? 0));
    if (first === undefined) break;
    kept = kept.filter((each) => each !== first);
  }
  const left = room - needed(kept);
  return kept.map((each) =>
    each.column.isFlexible ? { ...each, width: Math.min(each.width, least(each) + left) } : each,
  );
}

function gapBefore(at: number): Piece[] {
  return at === 0 ? [] : [{ text: ' '.repeat(gap), tone: 'plain' }];
}

function aligned<Row>(text: string, width: number, { isText }: Column<Row>): string {
  const cutText = cut(text, width);
  const space = ' '.repeat(Math.max(0, width - displayWidth(cutText)));
  return isText ? cutText + space : space + cutText;
}

/** Cuts text to `width`; cut text ends with `~`. */
function cut(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  let kept = '';
  let used = 1; // by the last character
  for (const { segment } of graphemes.segment(text)) {
    used += displayWidth(segment);
    if (used > width) break;
    kept += segment;
  }
  return `${kept}~`;
}

/** Cuts a line to `width`. */
export function cutLine(line: Line, width: number): Line {
  const kept: Piece[] = [];
  let left = width;
  for (const { text, tone } of line) {
    const piece = cut(text, left);
    kept.push({ text: piece, tone });
    left -= displayWidth(piece);
    if (piece !== text || left <= 0) break;
  }
  return kept;
}

/** Replaces characters that move the cursor, end the line, change colours or the direction of text. */
export function clean(text: string): string {
  return text.replace(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, '?');
}

/** A line of one piece. */
export function words(text: string, tone: Tone = 'plain'): Line {
  return [{ text: clean(text), tone }];
}
