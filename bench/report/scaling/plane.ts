// One plot: workers across, a measured and fitted value up. Marks are measured values. A law is a full line
// in the measured range, a dashed one beyond.
import type { ScaleContinuousNumeric } from 'd3-scale';
import { area, line } from 'd3-shape';
import { type Attributes, element, faint, rule, text } from '../svg.js';
import type { At, LawLine, Mark } from './series.js';
import type { Quartiles } from './types.js';

type Scale = ScaleContinuousNumeric<number, number>;

/** Scales from workers and values to pixels; their ranges are the plot's edges. */
export interface Plane {
  readonly x: Scale;
  readonly y: Scale;
  /** The last number of workers that was measured. */
  readonly measured: number;
}

export const idealStyle: Attributes = { stroke: '#b4bcc6', 'stroke-width': 1.2 };
export const lawStyles: readonly Attributes[] = [
  { 'stroke-width': 1.1, 'stroke-opacity': 0.8 },
  { 'stroke-width': 2 },
];
/** Style of a law beyond the measured range. */
export const beyondStyle: Attributes = { 'stroke-dasharray': '6 5' };
export const machineColor = '#6b7684';

export function drawFrame(
  plane: Plane,
  ticks: readonly number[],
  nameOf: (tick: number) => string,
): string[] {
  const { left, right, top, bottom } = edgesOf(plane);
  const start = plane.x(plane.measured);
  const grid = { stroke: '#e6eaee' };
  return [
    element('rect', {
      x: start,
      y: top,
      width: right - start,
      height: bottom - top,
      fill: '#f5f7f9',
    }),
    ...powersOfTwo(plane.x.domain()).flatMap((workers) => [
      rule([plane.x(workers), top], [plane.x(workers), bottom], grid),
      text(plane.x(workers), bottom + 17, String(workers), {
        fill: faint,
        'text-anchor': 'middle',
      }),
    ]),
    ...ticks.flatMap((tick) => [
      rule([left, plane.y(tick)], [right, plane.y(tick)], grid),
      text(left - 8, plane.y(tick) + 4, nameOf(tick), { fill: faint, 'text-anchor': 'end' }),
    ]),
    rule([start, top], [start, bottom], { stroke: '#9aa4af', 'stroke-dasharray': '1 3' }),
  ];
}

export function powersOfTwo([low = 1, high = 1]: readonly number[]): number[] {
  const powers: number[] = [];
  for (let power = 2 ** Math.ceil(Math.log2(low)); power <= high; power *= 2) powers.push(power);
  return powers;
}

export function drawLine({ x, y }: Plane, points: readonly At[], attributes: Attributes): string {
  const path = line<At>(
    ([workers]) => x(workers),
    ([, value]) => y(value),
  ).digits(1);
  return element('path', { d: path(points) ?? '', fill: 'none', ...attributes });
}

export function drawLaws(plane: Plane, laws: readonly LawLine[], stroke: string): string[] {
  const { x, y } = plane;
  const band = area<LawLine['band'][number]>()
    .x(([workers]) => x(workers))
    .y0(([, lowest]) => y(lowest))
    .y1(([, , highest]) => y(highest))
    .digits(1);
  const last = laws.at(-1);
  return [
    ...(last
      ? [element('path', { d: band(last.band) ?? '', fill: stroke, 'fill-opacity': 0.12 })]
      : []),
    ...laws.flatMap(({ inside, beyond }, index) => {
      const style = { stroke, ...lawStyles[laws.length === 1 ? 1 : index] };
      return [
        drawLine(plane, inside, style),
        drawLine(plane, beyond, { ...style, ...beyondStyle }),
      ];
    }),
  ];
}

export function drawMarks(
  { x, y }: Plane,
  marks: readonly Mark[],
  color: string,
  draw: (x: number, at: Quartiles, color: string) => string[],
): string[] {
  return marks.flatMap(({ workers, median, min, max, q1, q3 }) =>
    draw(x(workers), { median: y(median), min: y(min), max: y(max), q1: y(q1), q3: y(q3) }, color),
  );
}

/** A point with its range, and its middle half thicker; all in pixels. */
export function drawMark(x: number, at: Quartiles, color: string): string[] {
  const half = { stroke: color, 'stroke-width': 5, 'stroke-opacity': 0.4 };
  return [
    rule([x, at.min], [x, at.max], { stroke: color, 'stroke-width': 1.2 }),
    rule([x, at.q1], [x, at.q3], half),
    element('circle', { cx: x, cy: at.median, r: 3.2, fill: color, stroke: '#fff' }),
  ];
}

/** A ring and the ends of its range: both stay visible where a mark on as many workers covers them. */
export function drawRing(x: number, { median, min, max }: Quartiles, color: string): string[] {
  const thin = { stroke: color, 'stroke-width': 1.2 };
  return [
    rule([x, min], [x, max], thin),
    ...[min, max].map((end) => rule([x - 5, end], [x + 5, end], thin)),
    element('circle', { cx: x, cy: median, r: 5.2, fill: 'none', ...thin }),
  ];
}

function edgesOf({ x, y }: Plane): {
  left: number;
  right: number;
  top: number;
  bottom: number;
} {
  const [left = 0, right = 0] = x.range();
  const [bottom = 0, top = 0] = y.range();
  return { left, right, top, bottom };
}
