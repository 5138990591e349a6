// Report of `manycore doctor` as text: lines of at most 80 columns, with cost and remedy under each finding
// that is not well.

import { median } from '../../../lib/index.js';

/**
 * `ok`, `info`: nothing to do; `advice`: room for improvement; `problem`: costs something now; `missing`:
 * manycore works without it.
 */
export type State = 'ok' | 'info' | 'advice' | 'problem' | 'missing';

export interface Finding {
  readonly what: string;
  readonly state: State;
  /** The finding with its numbers. */
  readonly detail: string;
  readonly cost?: string;
  /** Advice; `undefined`: nothing to do. */
  readonly remedy?: string;
}

/** Findings of the machine, of a running program, or of one server process. */
export interface Chapter {
  readonly title: string;
  /** `undefined`: the machine. */
  readonly pid?: number;
  readonly findings: readonly Finding[];
}

/** True: no finding is `missing` or a `problem`. */
export function isWell(chapters: readonly Chapter[]): boolean {
  return findingsOf(chapters).every(({ state }) => state !== 'missing' && state !== 'problem');
}

const marks: Readonly<Record<State, string>> = {
  ok: 'ok',
  info: '',
  advice: 'ADVICE',
  problem: 'PROBLEM',
  missing: 'MISSING',
};
const markWidth = 7;
const lineWidth = 80;

/** Formats the chapters as text, with a verdict at the end. */
export function report(chapters: readonly Chapter[]): string {
  const width = Math.max(...findingsOf(chapters).map(({ what }) => what.length));
  const texts = chapters.map(({ title, findings }) => {
    return [...wrapped(title, ''), ...findings.flatMap((each) => linesOf(each, width))].join('\n');
  });
  return [...texts, verdict(chapters)].join('\n\n');
}

function linesOf({ state, what, detail, cost, remedy }: Finding, width: number): string[] {
  const indent = ' '.repeat(markWidth + width + 3);
  const head = `${marks[state].padEnd(markWidth)} ${what.padEnd(width)}  `;
  const [first = '', ...rest] = wrapped(detail, indent);
  return [
    (head + first.slice(head.length)).trimEnd(),
    ...rest,
    ...(cost === undefined ? [] : wrapped(`costs: ${cost}`, indent)),
    ...(remedy === undefined ? [] : wrapped(`→ ${remedy}`, indent, '  ')),
  ];
}

/** Wraps `text` at 80 columns, except a longer word; all lines but the first begin with `more`. */
function wrapped(text: string, indent: string, more = ''): string[] {
  const lines: string[] = [];
  let line = indent;
  for (const word of text.split(' ')) {
    const isFirst = line.trim() === '';
    if (!isFirst && line.length + 1 + word.length > lineWidth) {
      lines.push(line);
      line = indent + more + word;
    } else {
      line += isFirst ? word : ` ${word}`;
    }
  }
  return [...lines, line];
}

function verdict(chapters: readonly Chapter[]): string {
  const states = new Set(findingsOf(chapters).map(({ state }) => state));
  if (states.has('problem')) return 'Something costs time now: see PROBLEM above.';
  if (states.has('missing')) return 'It works here, with what is MISSING above.';
  if (states.has('advice')) return 'Everything works here; see ADVICE above.';
  return 'Everything works here.';
}

function findingsOf(chapters: readonly Chapter[]): Finding[] {
  return chapters.flatMap(({ findings }) => findings);
}

/** "1 job", "2 jobs". */
export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

/** Formats a share of 1. */
export function percent(share: number): string {
  return `${Math.round(100 * share)} %`;
}

/** Median of counts, rounded to a count. */
export function usual(counts: readonly number[]): number {
  return Math.round(median(counts));
}
