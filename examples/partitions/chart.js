// The picture as SVG text: for each number of workers a bar for each kind, as high as it is fast. A dashed
// line is as many times one process as there are workers.
const size = { width: 760, height: 400 };
const area = { left: 60, right: 740, top: 84, bottom: 320 };
/** A narrower bar has no number above it. */
const leastLabelWidth = 34;
const ink = '#1d2530';
const faint = '#5c6773';
// Colours that stay apart for colour-blind eyes too (Okabe and Ito).
const colors = {
  thread: '#e69f00',
  process: '#0072b2',
  sandbox: '#009e73',
  uml: '#cc79a7',
  gvisor: '#56b4e9',
};

/** `rows`: `{ kind, says, workers, times }`, a bar each; `about`: a line below the title. */
export function drawChart(rows, about) {
  const counts = [...new Set(rows.map(({ workers }) => workers))];
  const shown = [...new Map(rows.map(({ kind, says }) => [kind, says]))];
  const most = Math.ceil(1.05 * Math.max(...counts, ...rows.map(({ times }) => times)));
  const y = (times) => area.bottom - (times / most) * (area.bottom - area.top);
  const groupWidth = (area.right - area.left) / counts.length;
  const barWidth = Math.min(60, (0.8 * groupWidth) / shown.length);
  const groups = counts.flatMap((workers, group) => {
    const middle = area.left + (group + 0.5) * groupWidth;
    const left = middle - (barWidth * shown.length) / 2;
    const bars = shown.flatMap(([kind], at) => {
      const row = rows.find((each) => each.kind === kind && each.workers === workers);
      if (row === undefined) return [];
      const x = left + at * barWidth;
      return [
        rectangle(x + 1, y(row.times), barWidth - 2, area.bottom - y(row.times), colors[kind]),
        ...(barWidth < leastLabelWidth
          ? []
          : [text(x + barWidth / 2, y(row.times) - 5, row.times.toFixed(2), small)]),
      ];
    });
    const ends = [left - 6, left + barWidth * shown.length + 6];
    return [
      ...bars,
      line(ends, y(workers), `stroke="${ink}" stroke-dasharray="5 4"`),
      text(middle, area.bottom + 20, `${workers} worker${workers === 1 ? '' : 's'}`, centered),
    ];
  });
  const legend = shown.flatMap(([kind, says], at) => {
    const [x, row] = [area.left + (at % 3) * 230, area.bottom + 48 + Math.floor(at / 3) * 22];
    return [rectangle(x, row - 10, 12, 12, colors[kind]), text(x + 18, row, says)];
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${size.height}" ` +
      `width="${size.width}" height="${size.height}" font-family="system-ui, sans-serif" font-size="13">`,
    '<title>Fibonacci numbers by number and kind of workers</title>',
    rectangle(0, 0, size.width, size.height, '#fff'),
    text(20, 32, 'Fibonacci numbers by number and kind of workers', 'font-size="17"'),
    text(20, 54, about, `fill="${faint}"`),
    ...ticksTo(most).flatMap((tick) => [
      line([area.left, area.right], y(tick), 'stroke="#e3e7ec"'),
      text(area.left - 8, y(tick) + 4, `${tick} ×`, `fill="${faint}" text-anchor="end"`),
    ]),
    ...groups,
    line([area.left, area.right], area.bottom, `stroke="${ink}"`),
    ...legend,
    '</svg>\n',
  ].join('\n');
}

const centered = 'text-anchor="middle"';
const small = `${centered} font-size="11"`;

/** Whole numbers, at most six steps. */
function ticksTo(most) {
  const step = Math.ceil(most / 6);
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, at) => at * step);
}

const rounded = (value) => Number(value.toFixed(1));

function rectangle(x, y, width, height, fill) {
  const [left, top, wide, high] = [x, y, width, height].map(rounded);
  return `<rect x="${left}" y="${top}" width="${wide}" height="${high}" fill="${fill}"/>`;
}

function line([from, to], y, style) {
  return `<line x1="${rounded(from)}" x2="${rounded(to)}" y1="${rounded(y)}" y2="${rounded(y)}" ${style}/>`;
}

function text(x, y, content, style = '') {
  const look = style.includes('fill=') ? style : `fill="${ink}" ${style}`.trim();
  const escaped = content.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  return `<text x="${rounded(x)}" y="${rounded(y)}" ${look}>${escaped}</text>`;
}
