// What `manycore doctor` finds, as people and programs read it: lines that fit into 80 columns, and under
// each that is not well what it costs and how to mend it.

import { median } from '../internal/index.js';

/**
 * `ok` and `info` need nothing; `advice` is something that could be better; `problem` costs something now;
 * `missing` is something that manycore does without.
 */
export type State = 'ok' | 'info' | 'advice' | 'problem' | 'missing';

export interface Finding {
  readonly what: string;
  readonly state: State;
  /** With its figure. */
  readonly detail: string;
  readonly cost?: string;
  /** What to do; `undefined` when nothing is to be done. */
  readonly remedy?: string;
}

/** A program that runs, or one of the processes of a server. */
export interface Chapter {
  readonly title: string;
  /** `undefined`: of the machine. */
  readonly pid?: number;
  readonly findings: readonly Finding[];
}

/** Whether nothing is missing, and nothing costs something now. */
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

/** As text. */
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

/** `text` in lines of at most 80 columns, unless one word is longer; all but the first begin with `more`. */
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

/** Of a share of 1. */
export function percent(share: number): string {
  return `${Math.round(100 * share)} %`;
}

/** Of counts their median, as a count. */
export function usual(counts: readonly number[]): number {
  return Math.round(median(counts));
}
