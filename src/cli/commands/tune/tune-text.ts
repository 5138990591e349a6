// Report of `manycore tune` as text for a terminal of 80 columns.

import {
  type ConfigurationReport,
  configurationText,
  numberText,
  type TuneReport,
} from '../../../tune/index.js';

const widthChars = 80;
/** A longer configuration has its own line. */
const configurationChars = 26;

/** Formats everything except the lines about written files. */
export function tuneText(report: TuneReport): string {
  return [
    ...head(report),
    '',
    ...table(report),
    ...notes(report),
    '',
    ...wrapped(report.verdict, ''),
    ...report.trials.flatMap(({ parameter, configuration }) => {
      const reason = report.reasons[parameter];
      const text = configurationText({ [parameter]: configuration[parameter] });
      return reason === undefined ? [] : wrapped(`${text}: ${reason}`, '  ');
    }),
  ].join('\n');
}

function head({ program, load, cores, node, ...report }: TuneReport): string[] {
  const { configurations, warmUpSeconds, seconds, tookSeconds } = report;
  const runs = configurations.reduce((sum, each) => sum + each.runs, 0);
  const took = `${Math.floor(tookSeconds / 60)} min ${Math.round(tookSeconds % 60)} s`;
  return [
    ...wrapped(program, ''),
    ...wrapped(`under ${load}`, ''),
    `Node ${node}, ${cores} core${cores === 1 ? '' : 's'}; ${runs} runs of ${seconds} s after ${warmUpSeconds} s of warm-up, in ${took}`,
  ];
}

function table({ configurations, unit }: TuneReport): string[] {
  const columns: [name: string, cell: (report: ConfigurationReport) => string][] = [
    ['runs', ({ runs }) => String(runs)],
    [`${unit === 'calls' ? 'calls' : 'req'}/s`, (each) => cell(each.perSecond)],
    ['spread', (each) => (each.spread === undefined ? '-' : `${(each.spread * 100).toFixed(1)} %`)],
    ['times', (each) => (each.ratio === undefined ? '' : numberText(each.ratio))],
    ['p50 ms', (each) => cell(each.p50Ms)],
    ['p99 ms', (each) => cell(each.p99Ms)],
    ['MiB', (each) => cell(each.memoryMiB)],
    ['cores', (each) => cell(each.cpuCores)],
  ];
  const kept = columns.filter(
    ([name, text]) =>
      name === 'runs' || configurations.some((each) => !['', '-'].includes(text(each))),
  );
  const widths = kept.map(([name, text]) =>
    Math.max(name.length, ...configurations.map((each) => text(each).length)),
  );
  const line = (texts: readonly string[]): string =>
    texts.map((text, at) => text.padStart((widths[at] ?? 0) + 1)).join('');
  const first = 'configuration'.padEnd(configurationChars) + line(kept.map(([name]) => name));
  return [
    first,
    ...configurations.flatMap((each) => {
      const stats = line(kept.map(([, text]) => text(each)));
      if (each.problem !== undefined) return [each.text, ...wrapped(`out: ${each.problem}`, '  ')];
      if (each.text.length < configurationChars)
        return [each.text.padEnd(configurationChars) + stats];
      return [each.text, ' '.repeat(configurationChars) + stats];
    }),
  ];
}

function cell(value: number | undefined): string {
  return value === undefined || Number.isNaN(value) ? '-' : numberText(value);
}

function notes({ notTried, skipped, configurations }: TuneReport): string[] {
  const failing = configurations.filter(({ errorsPerSecond = 0 }) => errorsPerSecond > 0);
  return [
    ...notTried.flatMap(({ parameter, why }) => wrapped(`not tried: ${parameter}: ${why}`, '')),
    ...(skipped.length === 0 ? [] : wrapped(`no time for: ${skipped.join(', ')}`, '')),
    ...failing.flatMap(({ text, errorsPerSecond = 0 }) =>
      wrapped(`${text}: ${numberText(errorsPerSecond)} errors a second, which do not count`, ''),
    ),
  ];
}

/** Wraps words at the terminal's width; later lines are indented by two more columns. */
function wrapped(text: string, indent: string): string[] {
  const lines: string[] = [];
  let line = indent;
  for (const word of text.split(' ')) {
    if (line.length + word.length > widthChars && line.trim() !== '') {
      lines.push(line.trimEnd());
      line = `${indent}  `;
    }
    line += `${word} `;
  }
  return [...lines, line.trimEnd()];
}
