// The plot of a study as SVG text: for every mode, response times by the share of presses below them. Both
// scales are logarithmic: modes differ by a factor of a hundred, and the interesting presses are the slowest
// one in twenty, in a hundred, in a thousand.
import { scaleLog } from 'd3-scale';
import { line } from 'd3-shape';
import { formatMs } from './table.js';

const size = { width: 860, height: 500 };
const area = { left: 76, right: 690, top: 84, bottom: 428 };
const ink = '#1d2530';
const faint = '#5c6773';

// Colours that stay apart for colour-blind eyes too (Okabe and Ito).
const colors = { idle: '#6b7280', serialized: '#d55e00', threads: '#0072b2', parallel: '#009e73' };

const percentiles = [0.5, 0.9, 0.95, 0.99, 0.999];

/** SVG of a study as results.js makes it. */
export function drawPlot({ results, load, machine }) {
  const curves = results.map(({ mode, p95Ms, responsesMs }) => {
    return { mode, p95Ms, points: curveOf(responsesMs) };
  });
  const { x, y } = scales(curves);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${size.height}" ` +
      `width="${size.width}" height="${size.height}" font-family="system-ui, sans-serif" font-size="13">`,
    '<title>Response time of the play button</title>',
    `<rect width="${size.width}" height="${size.height}" fill="#fff"/>`,
    text(area.left, 32, 'Response time of the play button', { size: 18, weight: 600 }),
    text(area.left, 54, describe(load, machine), { fill: faint }),
    ...grid(x, y),
    ...curves.map(({ mode, points }) => drawCurve(mode, points, x, y)),
    ...labels(curves, y),
    '</svg>\n',
  ].join('\n');
}

/** Points [rarity, ms]: one press in `rarity` is slower than `ms`. From the median up. */
function curveOf(responsesMs) {
  const sorted = [...responsesMs].sort((a, b) => a - b);
  const count = sorted.length;
  return sorted
    .map((ms, rank) => [count / (count - rank), ms])
    .filter(([rarity], rank) => rarity >= 2 || rank === count - 1)
    .map(([rarity, ms]) => [Math.max(2, rarity), ms]);
}

function scales(curves) {
  const points = curves.flatMap((curve) => curve.points);
  const slowest = Math.max(1, ...points.map(([, ms]) => ms));
  const quickest = Math.min(1, ...points.map(([, ms]) => ms));
  const rarest = Math.max(20, ...points.map(([rarity]) => rarity));
  return {
    x: scaleLog([2, rarest], [area.left, area.right]),
    y: scaleLog([quickest, slowest], [area.bottom, area.top]).nice(),
  };
}

function describe(
  { loadPercent, decodeMs, width, height, ratePerSecond, player },
  { cores, node },
) {
  return (
    `${width} × ${height} PNG decoded for ${loadPercent} % of a core (${formatMs(decodeMs)} each), ` +
    `${ratePerSecond} presses/s, ${player === 'stand-in' ? 'stand-in player' : player}, ${cores} cores, Node ${node.slice(1)}`
  );
}

function grid(x, y) {
  const [low, high] = y.domain();
  const lines = [];
  for (const power of powersOfTen(low, high)) {
    const at = y(power).toFixed(1);
    lines.push(
      `<line x1="${area.left}" x2="${area.right}" y1="${at}" y2="${at}" stroke="#dde2e8"/>`,
    );
    lines.push(
      text(area.left - 10, Number(at) + 4, power < 1000 ? `${power} ms` : `${power / 1000} s`, {
        fill: faint,
        anchor: 'end',
      }),
    );
  }
  for (const share of percentiles) {
    const rarity = 1 / (1 - share);
    if (rarity > x.domain()[1] * 1.001) continue;
    const at = x(rarity).toFixed(1);
    lines.push(
      `<line x1="${at}" x2="${at}" y1="${area.top}" y2="${area.bottom}" stroke="#eef1f4"/>`,
    );
    const label = share === 0.5 ? 'median' : `${Number((share * 100).toFixed(1))} %`;
    lines.push(text(at, area.bottom + 22, label, { fill: faint, anchor: 'middle' }));
  }
  const middle = (area.left + area.right) / 2;
  lines.push(
    text(middle, area.bottom + 48, 'share of the presses that are answered sooner', {
      fill: faint,
      anchor: 'middle',
    }),
  );
  return lines;
}

function powersOfTen(low, high) {
  const powers = [];
  for (let power = Math.ceil(Math.log10(low) - 1e-9); 10 ** power <= high * 1.001; power++) {
    powers.push(Number((10 ** power).toPrecision(1)));
  }
  return powers;
}

function drawCurve(mode, points, x, y) {
  const path = line(
    ([rarity]) => x(rarity),
    ([, ms]) => y(ms),
  ).digits(1);
  return `<path d="${path(points)}" fill="none" stroke="${colors[mode]}" stroke-width="2.5" stroke-linejoin="round"/>`;
}

/** A name at the end of each curve, moved apart where curves end close to each other. */
function labels(curves, y) {
  const gap = 34;
  const placed = curves
    .filter(({ points }) => points.length > 0)
    .map(({ mode, p95Ms, points }) => ({ mode, p95Ms, at: y(points.at(-1)[1]) }))
    .sort((a, b) => a.at - b.at);
  placed.forEach((label, i) => {
    if (i > 0) label.at = Math.max(label.at, placed[i - 1].at + gap);
  });
  for (let i = placed.length - 1, limit = area.bottom; i >= 0; i--, limit -= gap) {
    placed[i].at = Math.min(placed[i].at, limit);
  }
  return placed.flatMap(({ mode, p95Ms, at }) => [
    text(area.right + 12, at, mode, { fill: colors[mode], weight: 600 }),
    text(area.right + 12, at + 15, `p95 ${formatMs(p95Ms)}`, { fill: faint, size: 12 }),
  ]);
}

function text(x, y, content, { fill = ink, anchor = 'start', size: fontSize, weight } = {}) {
  const more = `${fontSize ? ` font-size="${fontSize}"` : ''}${weight ? ` font-weight="${weight}"` : ''}`;
  const escaped = content.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  return `<text x="${x}" y="${Number(y).toFixed(1)}" fill="${fill}" text-anchor="${anchor}"${more}>${escaped}</text>`;
}
