// The page of evidence and its pictures, from the stored results.
import { drawChart } from './chart.js';
import { NotMeasured, Stored, type StoredResult } from './results.js';
import type { Section } from './section.js';
import { sections } from './sections.js';

/** Cases whose results the page shows, each once, in its order. */
export const evidenceCases: readonly string[] = [...new Set(sections.map(({ from }) => from))];

export interface Evidence {
  readonly page: string;
  /** SVG text by file name. */
  readonly pictures: Readonly<Record<string, string>>;
}

export function evidenceOf(results: readonly StoredResult[]): Evidence {
  const stored = new Stored(results);
  const pictures: Record<string, string> = {};
  const written = sections.map((section) => {
    const { name, title, from, source, chart } = section;
    const text = sentencesOf(section, stored);
    if (text !== undefined) pictures[`${name}.svg`] = drawChart(chart(stored));
    const picture = text === undefined ? '' : `![${chart(stored).title}](evidence/${name}.svg)\n\n`;
    const made = `*[\`${from}\`](../bench/cases/${from}.js): ${stored.madeOn(from)}.*`;
    return `## ${title}\n\n**The source.** ${source}\n\n**Here.** ${text ?? notMeasured}\n\n${picture}${made}\n`;
  });
  return { page: `${intro}\n${written.join('\n')}`, pictures };
}

const notMeasured = 'Not measured yet, or not whole: `npm run bench -- paper`.';

/** Returns `undefined` when one of their figures is missing: the conclusions would have no ground. */
function sentencesOf({ ours }: Section, stored: Stored): string | undefined {
  try {
    return ours(stored);
  } catch (error) {
    if (error instanceof NotMeasured) return undefined;
    throw error;
  }
}

const intro = `# Evidence

What the sources of manycore's ideas have measured, measured again with manycore. \`npm run bench -- paper\` runs all of it, takes about an hour on two cores, and writes this page; each figure is the median of fresh processes that took turns, with the range of the rounds in brackets; what is called times or a factor is that of two medians. The machines of the sources are others than ours, so it is the shapes that can be compared.
`;
