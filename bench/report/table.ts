// Numbers and bars as text, in the terminal and in the documents.
import { spreadOf } from './stats.js';
import type { Bar, Figure, Judged, Measured, Spread } from './types.js';

/** Formats three significant digits, thousands with commas; `-` for no value. */
export function formatNumber(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return '-';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString('en-US');
  return Number(value.toPrecision(3)).toString();
}

/** `12.3 (11–14)`; the range only if there is one. */
export function formatSpread(spread: Spread | undefined): string {
  if (spread === undefined) return '-';
  const middle = formatNumber(spread.median);
  const [min, max] = [formatNumber(spread.min), formatNumber(spread.max)];
  return min === max ? middle : `${middle} (${min}–${max})`;
}

/** The bar itself: `≤ 0.2 ×`, `≥ 1,000 × faster`, `≤ 0 ticks`. */
function formatBar(bar: Bar, figure: Figure): string {
  const unit = bar.against === undefined ? ` ${figure.unit}` : ' ×';
  const aim = bar.isAim ? 'aim: ' : '';
  if (bar.atMost !== undefined) return `${aim}≤ ${formatNumber(bar.atMost)}${unit}`;
  if (bar.atLeast !== undefined) return `${aim}≥ ${formatNumber(bar.atLeast)}${unit}`;
  return `${aim}≥ ${formatNumber(bar.timesFaster)}${unit} faster`;
}

/** Formats the reached value in the bar's terms: `0.026 × (0.02–0.03)`. */
function formatReached(judged: Judged, figure: Figure): string {
  const { bar, reached } = judged;
  if (reached === undefined) return 'not measured';
  const unit = bar.against === undefined ? ` ${figure.unit}` : ' ×';
  const faster = bar.timesFaster === undefined ? '' : ' faster';
  const [min, max] = [formatNumber(reached.min), formatNumber(reached.max)];
  const range = min === max ? '' : ` (${min}–${max})`;
  return `${formatNumber(reached.median)}${unit}${faster}${range}`;
}

/** Lines of a table with columns as wide as their widest cell; the first column to the left. */
export function alignColumns(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, cell.length);
    });
  }
  return rows.map((row) =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('   ')
      .trimEnd(),
  );
}

/** Table of one setting of a case, one line a contender. */
export function settingTable(
  setting: string,
  figures: Readonly<Record<string, Figure>>,
  measured: readonly Measured[],
): string[] {
  const rows = measured.filter((one) => one.setting === setting);
  const names = Object.keys(figures).filter((name) =>
    rows.some((row) => spreadOf(row.samples[name]) !== undefined),
  );
  const head = ['', ...names.map((name) => `${figures[name]?.says}, ${figures[name]?.unit}`)];
  const body = rows.map((row) => [
    row.contender,
    ...names.map((name) => formatSpread(spreadOf(row.samples[name]))),
  ]);
  return [...alignColumns([head, ...body]), ...rows.flatMap(failureLines)];
}

/** One line for each way in which a contender failed: `! piscina, rounds 1 and 3: …`. */
export function failureLines({
  contender,
  failures,
}: Pick<Measured, 'contender' | 'failures'>): string[] {
  const roundsOf = new Map<string, number[]>();
  for (const { round, says } of failures) {
    roundsOf.set(says, [...(roundsOf.get(says) ?? []), round]);
  }
  return [...roundsOf].map(([says, rounds]) => {
    const which = rounds.length === 1 ? 'round' : 'rounds';
    return `! ${contender}, ${which} ${rounds.join(' and ')}: ${says}`;
  });
}

/** The verdicts of a case, one line a bar. */
export function verdictTable(
  judged: readonly Judged[],
  figures: Readonly<Record<string, Figure>>,
): string[] {
  return alignColumns(
    judged.map((one) => {
      const figure = figureOf(one, figures);
      return [
        `${one.verdict.toUpperCase().padEnd(10)} ${one.bar.says}`,
        formatBar(one.bar, figure),
        formatReached(one, figure),
        `${withUnit(one.mine, figure)}${one.rival ? ` / ${one.rival.contender} ${withUnit(one.theirs, figure)}` : ''}`,
      ];
    }),
  );
}

function figureOf(judged: Judged, figures: Readonly<Record<string, Figure>>): Figure {
  return figures[judged.bar.figure] ?? { says: '', unit: '', better: 'neither' };
}

function withUnit(spread: Spread | undefined, figure: Figure): string {
  return spread === undefined ? '-' : `${formatNumber(spread.median)} ${figure.unit}`;
}

/** One stored case as the documents need it. */
export interface StoredCase {
  readonly name: string;
  readonly figures: Readonly<Record<string, Figure>>;
  readonly judged: readonly Judged[];
}

/** Table of docs/benchmarks.md: every bar, also missed ones, each with its case and stored result. */
export function claimsTable(cases: readonly StoredCase[], machine: string): string {
  const lines = [
    '| claim | bar | reached | manycore / rival | verdict | case |',
    '|---|---|---|---|---|---|',
  ];
  for (const { name, figures, judged } of cases) {
    for (const one of judged) {
      const bar = formatBar(one.bar, figureOf(one, figures));
      const links = `[${name}](../bench/cases/${name}.js), [result](../bench/results/${name}.json)`;
      const [claim, reached, sides] = cellsOf(one, figures);
      lines.push(`| ${claim} | ${bar} | ${reached} | ${sides} | ${one.verdict} | ${links} |`);
    }
  }
  return [...lines, '', machine].join('\n');
}

/** Results of one line of Node; `folder`: where they are in bench/results, empty or with a slash. */
type Line = readonly [node: string, folder: string, cases: readonly StoredCase[]];

/** Table of the bars, without aims, that at least one line other than the first has measured. */
export function linesTable(lines: readonly Line[]): string {
  const [, ...others] = lines;
  const rows = new Map<string, readonly [name: string, claim: string]>();
  for (const [, , cases] of others) {
    for (const { name, judged } of cases) {
      for (const { bar } of judged) {
        if (bar.isAim !== true) rows.set(`${name} ${bar.says}`, [name, bar.says]);
      }
    }
  }
  return [
    `| claim | bar | ${lines.map(([node]) => node).join(' | ')} | case |`,
    `|---|---|${lines.map(() => '---|').join('')}---|`,
    ...[...rows.values()].map((row) => lineRow(row, lines)),
  ].join('\n');
}

function lineRow([name, claim]: readonly [string, string], lines: readonly Line[]): string {
  let bar: string | undefined;
  const cells = lines.map(([, folder, cases]) => {
    const stored = cases.find((each) => each.name === name);
    const one = stored?.judged.find((each) => each.bar.says === claim && each.bar.isAim !== true);
    if (stored === undefined || one === undefined) return '';
    const figure = figureOf(one, stored.figures);
    const own = formatBar(one.bar, figure);
    bar ??= own;
    const note = own === bar ? '' : ` (bar ${own})`;
    const link = `[${one.verdict}](../bench/results/${folder}${name}.json)`;
    return `${formatReached(one, figure)}, ${link}${note}`;
  });
  return `| ${claim} | ${bar ?? ''} | ${cells.join(' | ')} | [${name}](../bench/cases/${name}.js) |`;
}

/** The table of README.md: the named bars alone. Throws for a name that no stored case has. */
export function headlineTable(
  cases: readonly StoredCase[],
  names: readonly (readonly [name: string, claim: string])[],
): string {
  const lines = names.map(([name, claim]) => {
    const stored = cases.find((each) => each.name === name);
    const one = stored?.judged.find(({ bar }) => bar.says === claim);
    if (stored === undefined || one === undefined)
      throw new Error(`no stored bar ${name}: ${claim}`);
    const [, reached, sides] = cellsOf(one, stored.figures);
    return `| ${claim} | ${reached} | ${sides} | [${name}](bench/cases/${name}.js) |`;
  });
  return ['| measured | ratio | manycore / rival | case |', '|---|---|---|---|', ...lines].join(
    '\n',
  );
}

function cellsOf(
  one: Judged,
  figures: Readonly<Record<string, Figure>>,
): [claim: string, reached: string, sides: string] {
  const figure = figureOf(one, figures);
  const theirs = one.rival ? ` / ${withUnit(one.theirs, figure)} (${one.rival.contender})` : '';
  return [one.bar.says, formatReached(one, figure), `${withUnit(one.mine, figure)}${theirs}`];
}

/**
 * Returns `page` with `table` between the marker lines of `name`; `undefined` when one of them is missing.
 */
export function insertTable(page: string, name: string, table: string): string | undefined {
  const begin = `<!-- ${name}:begin -->`;
  const end = `<!-- ${name}:end -->`;
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  if (from === -1 || to < from) return undefined;
  return `${page.slice(0, from + begin.length)}\n${table}\n${page.slice(to)}`;
}
