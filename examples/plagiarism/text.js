// The report for a terminal: ranked pairs with their matched lines, what was left out, what was noted.

// Number of matches listed for each pair, longest first; the page shows all.
const mostMatches = 6;

/** The first `limit` pairs of a report, and what was not compared, as lines of text. */
export function formatReport(report, limit) {
  const shown = report.pairs.slice(0, limit);
  const unshown = report.pairs.length - shown.length;
  return [
    summarize(report),
    ...(shown.length > 0 ? ['', head, ...shown.map(formatPair)] : []),
    ...(unshown > 0 ? [`\n… and ${unshown} more: see --limit, --json and --html`] : []),
    ...formatPlanted(report.planted),
    ...list(
      'Left out:',
      report.problems.map(({ path, reason }) => `${path} ${reason}`),
    ),
    ...list(
      'Compared, but:',
      report.files.flatMap(({ path, note }) => (note === undefined ? [] : `${path} ${note}`)),
    ),
  ].join('\n');
}

/** 0.876 → "88 %"; only all is "100 %". */
export function formatShare(share) {
  return `${share < 1 ? Math.min(99, Math.round(share * 100)) : 100} %`;
}

/** The lines of one side of a match: "7" or "7–12". */
export function formatLines({ firstLine, lastLine }) {
  return firstLine === lastLine ? `${firstLine}` : `${firstLine}–${lastLine}`;
}

/** One line: how many files and pairs were compared, and how many pairs are listed. */
export function summarize({ folder, comparedCount, fileCount, pairCount, pairs, ...settings }) {
  const { threshold, by, leastTokens } = settings;
  const share = `${formatShare(threshold)}${by === 'similarity' ? '' : ' of the smaller'}`;
  return (
    `${folder}: ${comparedCount} of ${count(fileCount, 'file')} compared, ` +
    `${count(pairCount, 'pair')}, ${pairs.length} with at least ${share} and ` +
    `${count(leastTokens, 'token')} in common`
  );
}

const head = formatRow('rank', 'alike', 'contained', 'tokens', 'files');

function formatPair({ rank, a, b, similarity, containment, tokens, matches }) {
  const row = formatRow(rank, formatShare(similarity), formatShare(containment), tokens, a);
  const indent = ' '.repeat(row.length - a.length);
  return [row, indent + b, `${indent}lines ${formatMatches(matches)}`].join('\n');
}

function formatRow(rank, alike, contained, tokens, files) {
  const cells = [String(rank).padStart(5), alike.padStart(7), contained.padStart(11)];
  return `${cells.join('')}${String(tokens).padStart(8)}  ${files}`;
}

function formatMatches(matches) {
  const longest = [...matches]
    .sort((one, other) => other.tokens - one.tokens)
    .slice(0, mostMatches);
  const rest = matches.length - longest.length;
  return longest
    .map(({ a, b }) => `${formatLines(a)} = ${formatLines(b)}`)
    .concat(rest > 0 ? `${rest} more` : [])
    .join(', ');
}

function formatPlanted(planted) {
  if (planted === undefined) return [];
  const { count: all, missing, lowestRank } = planted;
  return [
    `\nPlanted: ${all - missing.length} of ${count(all, 'pair')} found, the last on rank ${lowestRank}`,
    ...missing.map(({ original, copy }) => `  not found: ${copy}, of ${original}`),
  ];
}

function list(title, lines) {
  return lines.length === 0 ? [] : ['', title, ...lines.map((line) => `  ${line}`)];
}

/** 1 → "1 file", 2000 → "2,000 files". */
export function count(number, what, ending = 's') {
  return `${number.toLocaleString('en')} ${what}${number === 1 ? '' : ending}`;
}
