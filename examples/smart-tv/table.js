// The table that is printed at the end, and the sentences under it.
import { compare } from './stats.js';

const columns = [
  ['mode', ({ mode }) => mode],
  ['presses', ({ presses }) => String(presses)],
  ['p50', ({ p50Ms }) => formatMs(p50Ms)],
  ['p95', ({ p95Ms }) => formatMs(p95Ms)],
  ['p99', ({ p99Ms }) => formatMs(p99Ms)],
  ['max', ({ maxMs }) => formatMs(maxMs)],
  ['p50 : idle', ({ mode }, { toIdle }) => formatRatio(toIdle[mode]?.p50)],
  ['p95 : idle', ({ mode }, { toIdle }) => formatRatio(toIdle[mode]?.p95)],
  ['decodes/s', ({ decodesPerSecond }) => (decodesPerSecond ? decodesPerSecond.toFixed(1) : '-')],
  ['left out', ({ leftOut, mode }) => (mode === 'idle' ? '-' : String(leftOut))],
];

/** The table of a study's results as lines of text. Response times in milliseconds. */
export function formatTable(results) {
  const ratios = compare(results);
  const rows = results.map((result) => columns.map(([, cell]) => cell(result, ratios)));
  const head = columns.map(([title]) => title);
  const widths = head.map((title, i) =>
    Math.max(title.length, ...rows.map((row) => row[i].length)),
  );
  const line = (cells) =>
    cells
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i])))
      .join('  ');
  const rule = widths.map((width) => '-'.repeat(width)).join('  ');
  return [line(head), rule, ...rows.map(line), '', ...remarks(results, ratios)].join('\n');
}

/** 0.4213 → "0.42 ms", 12.34 → "12.3 ms", 187.2 → "187 ms". */
export function formatMs(ms) {
  return `${ms.toFixed(ms < 10 ? 2 : ms < 100 ? 1 : 0)} ms`;
}

function formatRatio(ratio) {
  return ratio === undefined ? '-' : `${ratio.toFixed(ratio < 10 ? 2 : 0)} x`;
}

function remarks(results, { serializedToParallelP95 }) {
  const lines = [];
  if (serializedToParallelP95 !== undefined) {
    lines.push(`serialized p95 : parallel p95 = ${serializedToParallelP95.toFixed(0)}`);
  }
  for (const { mode, failed, failedDecodes } of results) {
    if (failed > 0) lines.push(`${mode}: ${failed} presses got no answer`);
    if (failedDecodes > 0) lines.push(`${mode}: ${failedDecodes} decodes failed`);
  }
  return lines;
}
