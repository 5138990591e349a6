// The curves of one workload as SVG text: a column for each channel. Above is speed-up over one worker of the
// channel. Both scales are logarithmic, so that the measured range keeps its room beside the extrapolated one
// and the ideal is a straight line. Below is the gain by each worker in plain loops, which shows the cost of
// the pool itself. On a light card, so that it reads the same on any page.
import { scaleLinear, scaleLog } from 'd3-scale';
import { drawCard, element, faint, text, wrap } from '../svg.js';
import { machineItself } from './curves.js';
import { drawLegend } from './legend.js';
import { extrapolatedCounts } from './plan.js';
import {
  drawFrame,
  drawLaws,
  drawLine,
  drawMark,
  drawMarks,
  drawRing,
  idealStyle,
  machineColor,
  type Plane,
  powersOfTwo,
} from './plane.js';
import { type At, type Series, shareSeries, speedUpSeries } from './series.js';
import { caveats, mostWorkersOf } from './table.js';
import type { WorkloadCurves } from './types.js';

export interface PlotContext {
  readonly rounds: number;
  readonly physicalCores: number;
  /** Machine and versions of the numbers, in a few words. */
  readonly machine: string;
}

const column = { left: 66, width: 250, gap: 56 };
/** The two rows of plots. */
const upper = { top: 134, bottom: 356 };
const lower = { top: 424, bottom: 524 };
const legendTop = 598;
// Colours that stay apart for colour-blind eyes too (Okabe and Ito).
const channels: Readonly<Record<string, { color: string; title: string }>> = {
  shm: { color: '#009e73', title: 'processes, shared memory' },
  socket: { color: '#d55e00', title: 'processes, sockets' },
  memory: { color: '#0072b2', title: 'threads, message ports' },
};

/** Drawn data of a curve, in both rows. */
interface ChannelSeries {
  readonly contender: string;
  readonly speedUps: Series;
  readonly shares: Series;
}

/** Ranges shared by all columns, so that they can be compared. */
interface Extent {
  readonly measured: number;
  /** Last number of workers of the fitted laws. */
  readonly reach: number;
  readonly leastSpeedUp: number;
  readonly mostShare: number;
}

/** Returns `undefined` when no channel is among the curves. */
export function drawScaling(
  { workload, says, curves }: WorkloadCurves,
  { rounds, physicalCores, machine }: PlotContext,
): string | undefined {
  const measured = mostWorkersOf(curves);
  const reach = Math.max(...extrapolatedCounts(measured));
  const series = curves.map((curve) => ({
    contender: curve.contender,
    speedUps: speedUpSeries(curve, measured, reach),
    shares: shareSeries(curve, measured, reach),
  }));
  const drawn = series.filter(({ contender }) => channels[contender] !== undefined);
  if (drawn.length === 0) return undefined;
  const itself = series.find(({ contender }) => contender === machineItself);
  const extent = extentOf(itself === undefined ? drawn : [...drawn, itself], measured, reach);
  const width = Math.max(700, column.left - 24 + drawn.length * (column.width + column.gap));
  const notes = caveats(curves, measured, physicalCores);
  const legend = drawLegend({ top: legendTop, width, rounds, notes });
  return drawCard(width, legend.bottom, [
    element('title', {}, `Scaling: ${workload}`),
    text(24, 36, `Scaling: ${workload}`, { 'font-size': 18, 'font-weight': 600 }),
    ...wrap(`${says}; ${rounds} rounds on ${machine}`, width / 7).map((part, row) =>
      text(24, 58 + 17 * row, part, { fill: faint }),
    ),
    ...drawn.flatMap((one, index) => drawColumn(one, itself, extent, index)),
    ...legend.parts,
  ]);
}

function extentOf(series: readonly ChannelSeries[], measured: number, reach: number): Extent {
  const speedUps = series.flatMap((one) => one.speedUps.marks);
  const shares = series.flatMap((one) => one.shares.marks);
  return {
    measured,
    reach,
    leastSpeedUp: 0.9 * Math.min(1, ...speedUps.map(({ min }) => min)),
    mostShare: Math.max(1.1, ...shares.map(({ max }) => 1.04 * max)),
  };
}

/** Draws both plots of a channel. */
function drawColumn(
  own: ChannelSeries,
  itself: ChannelSeries | undefined,
  { measured, reach, leastSpeedUp, mostShare }: Extent,
  index: number,
): string[] {
  const { color = '', title = '' } = channels[own.contender] ?? {};
  const left = column.left + index * (column.width + column.gap);
  const x = scaleLog([0.9, reach], [left, left + column.width]).base(2);
  const upY = scaleLog([leastSpeedUp, reach], [upper.bottom, upper.top]).base(2).clamp(true);
  const shareY = scaleLinear([0, mostShare], [lower.bottom, lower.top]).clamp(true);
  const up: Plane = { x, y: upY, measured };
  const share: Plane = { x, y: shareY, measured };
  return [
    text(left, upper.top - 32, title, { fill: color, 'font-weight': 600 }),
    text(left, upper.top - 12, 'speed-up over one worker', { fill: faint }),
    ...drawFrame(up, powersOfTwo(upY.domain()), String),
    text(x(reach), upper.top - 12, 'extrapolated', { fill: faint, 'text-anchor': 'end' }),
    drawLine(up, lineOf(reach, reach), idealStyle),
    ...drawSeries(up, own.speedUps, itself?.speedUps, color),
    text(left, lower.top - 12, 'each worker, as a share of the plain loop', { fill: faint }),
    ...drawFrame(share, shareY.ticks(3), (tick) => `${Math.round(100 * tick)} %`),
    drawLine(share, lineOf(reach, 1), idealStyle),
    ...drawSeries(share, own.shares, itself?.shares, color),
    text(left + column.width / 2, lower.bottom + 36, 'workers, on as many cores', {
      fill: faint,
      'text-anchor': 'middle',
    }),
  ];
}

/** The ideal: from 1 on one worker to `value` on `reach`. */
const lineOf = (reach: number, value: number): At[] => [
  [1, 1],
  [reach, value],
];

/** A channel over the limit of the machine, which has no laws here. */
function drawSeries(
  plane: Plane,
  own: Series,
  itself: Series | undefined,
  color: string,
): string[] {
  return [
    ...drawLaws(plane, own.laws, color),
    ...drawMarks(plane, itself?.marks ?? [], machineColor, drawRing),
    ...drawMarks(plane, own.marks, color, drawMark),
  ];
}
