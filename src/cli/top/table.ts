// Tables as wide as the terminal: text is measured as it is shown, so that wide characters break nothing, and
// what programs are called cannot steer the terminal. Columns that do not fit are left out, those that matter
// least first.

import displayWidth from 'string-width';

/** How a piece of text is to look, where there are colours. */
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
  /** Aligned to the left. */
  readonly isText?: boolean;
  /** The one that gets the room that is left; at most one in a table. */
  readonly isFlexible?: boolean;
  /** The higher, the sooner it is left out; without it never. */
  readonly spare?: number;
}

const gap = 2;
const minFlexible = 12;
/** Of the mark before a chosen row. */
const markWidth = 2;
const graphemes = new Intl.Segmenter();

/** The head, then a line for each row; as wide as its text where `width` is `undefined`. */
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

/** No wider than `width`; what is left out is told by its last character. */
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

/** A line no wider than `width`. */
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

/** Nothing that moves the cursor, ends the line, changes colours, or turns the direction of what follows. */
export function clean(text: string): string {
  return text.replace(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, '?');
}

/** Words of our own. */
export function words(text: string, tone: Tone = 'plain'): Line {
  return [{ text: clean(text), tone }];
}
