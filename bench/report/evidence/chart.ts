// Bars in groups, as SVG text. A group has one bar for each series, with the range of the rounds, or with
// parts on top of each other. On a light card, so that it reads the same on any page.
import { scaleBand, scaleLinear, scaleLog } from 'd3-scale';
import { drawCard, element, escaped, faint, ink, rule, text, wrap } from '../svg.js';
import { formatNumber } from '../table.js';
import type { Spread } from '../types.js';

/** A bar: a value with its range, or parts from the bottom up. `undefined`: nothing was measured. */
export type BarValue = Spread | readonly Spread[] | undefined;

export interface Chart {
  readonly title: string;
  /** Unit of the height of bars. */
  readonly unit: string;
  /** Parts need `linear`: they have no logarithm. */
  readonly scale: 'linear' | 'log';
  /** Names of the bars of a group, or of the parts of all bars, in the order of `groups`. */
  readonly series: readonly string[];
  readonly groups: readonly { readonly label: string; readonly bars: readonly BarValue[] }[];
  /** Below the chart. */
  readonly notes: readonly string[];
}

// Colours that stay apart for colour-blind eyes too (Okabe and Ito).
const colors = [
  '#0072b2',
  '#e69f00',
  '#009e73',
  '#cc79a7',
  '#56b4e9',
  '#d55e00',
  '#f0e442',
  '#999999',
];
const width = 760;
const plot = { left: 72, right: 20, top: 62, height: 240 };
const bottom = plot.top + plot.height;
const legend = { top: bottom + 52, rowHeight: 20, columns: 3 };
const tickCount = 5;

export function drawChart(chart: Chart): string {
  const y = heightScale(chart);
  const x = scaleBand()
    .domain(chart.groups.map(({ label }) => label))
    .range([plot.left, width - plot.right])
    .padding(0.18);
  const groups = chart.groups.flatMap(({ label, bars }) => [
    text((x(label) ?? 0) + x.bandwidth() / 2, bottom + 18, label, {
      'text-anchor': 'middle',
      'font-size': 12,
    }),
    ...drawGroup(bars, { left: x(label) ?? 0, width: x.bandwidth(), y }),
  ]);
  const { parts, end } = drawLegend(chart);
  return drawCard(width, Math.round(end), [
    element('title', {}, escaped(chart.title)),
    text(20, 28, chart.title, { 'font-size': 16, 'font-weight': 600 }),
    text(20, 48, chart.unit + (chart.scale === 'log' ? ', logarithmic' : ''), {
      fill: faint,
      'font-size': 12,
    }),
    ...drawTicks(y),
    ...groups,
    rule([plot.left, bottom], [width - plot.right, bottom], { stroke: ink }),
    ...parts,
  ]);
}

interface Height {
  (value: number): number;
  ticks(count: number): number[];
}

function heightScale({ groups, scale }: Chart): Height {
  const bars = groups.flatMap((group) => group.bars);
  const tops = bars.map(topOf);
  const most = Math.max(...tops) || 1; // also where nothing was measured
  const range = [bottom, plot.top];
  if (scale === 'linear') return scaleLinear().domain([0, most]).nice().range(range);
  const lows = bars.flatMap((bar) => (isSpread(bar) && bar.min > 0 ? [bar.min] : []));
  const least = Math.min(...lows, most);
  return scaleLog()
    .domain([least / 2, most])
    .nice()
    .clamp(true)
    .range(range);
}

function isSpread(bar: BarValue): bar is Spread {
  return bar !== undefined && 'median' in bar;
}

function topOf(bar: BarValue): number {
  if (bar === undefined) return 0;
  return isSpread(bar) ? bar.max : bar.reduce((sum, part) => sum + part.median, 0);
}

function drawTicks(y: Height): string[] {
  const all = y.ticks(tickCount);
  // A logarithmic scale offers all multiples: the powers of ten are enough.
  const powers = all.filter((tick) => Math.log10(tick) % 1 === 0);
  const shown = all.length > 2 * tickCount && powers.length > 1 ? powers : all;
  return shown.flatMap((tick) => [
    rule([plot.left, y(tick)], [width - plot.right, y(tick)], { stroke: '#e3e7ec' }),
    text(plot.left - 8, y(tick) + 4, formatNumber(tick), {
      'text-anchor': 'end',
      'font-size': 12,
      fill: faint,
    }),
  ]);
}

interface Place {
  readonly left: number;
  readonly width: number;
  readonly y: Height;
}

function drawGroup(bars: readonly BarValue[], place: Place): string[] {
  const each = place.width / bars.length;
  return bars.flatMap((bar, at) => {
    const own = { ...place, left: place.left + at * each, width: Math.max(2, each - 2) };
    if (bar === undefined) return [];
    return isSpread(bar) ? drawBar(bar, colorOf(at), own) : drawParts(bar, own);
  });
}

function colorOf(at: number): string {
  return colors[at % colors.length] ?? ink;
}

function drawBar({ median, min, max }: Spread, fill: string, { left, width: wide, y }: Place) {
  const middle = left + wide / 2;
  const bar = { x: left, y: y(median), width: wide, height: bottom - y(median), fill };
  if (min === max) return [element('rect', bar)];
  return [
    element('rect', bar),
    rule([middle, y(min)], [middle, y(max)], { stroke: ink, 'stroke-width': 1.5 }),
  ];
}

function drawParts(parts: readonly Spread[], { left, width: wide, y }: Place): string[] {
  let sum = 0;
  return parts.map(({ median }, at) => {
    const from = y(sum);
    sum += Math.max(0, median);
    const to = y(sum);
    return element('rect', { x: left, y: to, width: wide, height: from - to, fill: colorOf(at) });
  });
}

function drawLegend({ series, notes }: Chart): { parts: string[]; end: number } {
  const isNeeded = series.length > 1;
  const rows = isNeeded ? Math.ceil(series.length / legend.columns) : 0;
  const wide = (width - 40) / legend.columns;
  const keys = (isNeeded ? series : []).flatMap((name, at) => {
    const left = 20 + (at % legend.columns) * wide;
    const top = legend.top + Math.floor(at / legend.columns) * legend.rowHeight;
    return [
      element('rect', { x: left, y: top - 10, width: 12, height: 12, fill: colorOf(at) }),
      text(left + 18, top, name, { 'font-size': 12 }),
    ];
  });
  const notesTop = legend.top + rows * legend.rowHeight + 6;
  const lines = notes.flatMap((note) => wrap(note, 115));
  const written = lines.map((line, at) =>
    text(20, notesTop + at * 16, line, { 'font-size': 12, fill: faint }),
  );
  return { parts: [...keys, ...written], end: notesTop + lines.length * 16 + 8 };
}
