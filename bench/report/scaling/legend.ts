// Legend of a scaling plot: its signs in two rows, measured and fitted apart; below them the notes on the
// fit.

import { element, faint, ink, rule, text, wrap } from '../svg.js';
import { beyondStyle, drawMark, drawRing, idealStyle, lawStyles, machineColor } from './plane.js';

export interface LegendContext {
  readonly top: number;
  readonly width: number;
  readonly rounds: number;
  readonly notes: readonly string[];
}

/** A sign and its text; `width` in pixels, text included. */
interface Entry {
  readonly sign: (x: number, y: number) => readonly string[];
  readonly label: string;
  readonly width: number;
}

const rowHeight = 22;
const signWidth = 34;

export function drawLegend({ top, width, rounds, notes }: LegendContext): {
  parts: readonly string[];
  /** Lowest y of the card. */
  bottom: number;
} {
  const lines = notes.flatMap((note) =>
    wrap(`${note[0]?.toUpperCase()}${note.slice(1)}.`, width / 6.4),
  );
  const notesTop = top + 2.2 * rowHeight;
  return {
    parts: [
      ...drawRow('measured', top, [
        mark(drawMark, ink, `pmap: median, middle half and range of ${rounds} rounds`, 320),
        mark(
          drawRing,
          machineColor,
          'the machine itself, as many processes without a pool: median and range',
          430,
        ),
      ]),
      ...drawRow('fitted', top + rowHeight, [
        law(1, 'USL; dashed: extrapolated', 200),
        law(0, 'Amdahl’s law', 120),
        { sign: drawBand, label: 'fits to single rounds', width: 170 },
        { sign: drawIdeal, label: 'ideal', width: 60 },
      ]),
      ...lines.map((line, row) =>
        text(24, notesTop + 17 * row, line, { fill: faint, 'font-size': 12 }),
      ),
    ],
    bottom: notesTop + 17 * lines.length + (lines.length === 0 ? -8 : 4),
  };
}

function drawRow(name: string, y: number, entries: readonly Entry[]): string[] {
  const parts = [text(24, y, name, { 'font-weight': 600 })];
  let x = 104;
  for (const { sign, label, width } of entries) {
    parts.push(...sign(x, y - 4), text(x + signWidth, y, label));
    x += signWidth + width;
  }
  return parts;
}

function mark(draw: typeof drawMark, color: string, label: string, width: number): Entry {
  const sign = (x: number, y: number) => {
    const spread = { median: y, q1: y + 6, q3: y - 6, min: y + 9, max: y - 9 };
    return draw(x + signWidth / 2 - 3, spread, color);
  };
  return { sign, label, width };
}

function law(index: number, label: string, width: number): Entry {
  const style = { stroke: ink, ...lawStyles[index] };
  const sign = (x: number, y: number) => [
    rule([x, y], [x + 12, y], style),
    rule([x + 12, y], [x + signWidth - 6, y], { ...style, ...beyondStyle }),
  ];
  return { sign, label, width };
}

const drawBand = (x: number, y: number): string[] => [
  element('rect', {
    x,
    y: y - 6,
    width: signWidth - 6,
    height: 12,
    fill: ink,
    'fill-opacity': 0.12,
  }),
];

const drawIdeal = (x: number, y: number): string[] => [
  rule([x, y], [x + signWidth - 6, y], idealStyle),
];
