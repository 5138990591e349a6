// The result of a check as one plain object: the JSON report as it is, and the input of text.js and page.js.
import { placeOf } from './java.js';
import { guaranteedTokens } from './winnow.js';

/**
 * Makes the report of one check. `files` come from files.js; `documents` and `found` from check(), for the
 * files with a text. `settings` has the `folder`, the ranking measure (`by`: 'similarity' or 'containment'),
 * its `threshold`, and `leastTokens`, the tokens that a listed pair needs. `planted` is optional: pairs that
 * should be listed, `{ original, copy }`. docs/guide/plagiarism.md explains the fields.
 */
export function makeReport({ files, documents, found, settings, planted }) {
  const programs = programsOf(files, documents);
  const pairs = rank(withIndices(found, programs.length), settings)
    .map(({ a, b, ...result }) => ({ a: programs[a], b: programs[b], ...result }))
    .map(describePair);
  return {
    ...settings,
    leastMatchTokens: guaranteedTokens,
    fileCount: files.length,
    comparedCount: programs.length,
    pairCount: found.length,
    files: programs.map(({ path, program, note }) => {
      return { path, tokens: program.codes.length, ...(note && { note }) };
    }),
    problems: problemsOf(files, documents),
    pairs,
    ...(planted && { planted: findPlanted(planted, pairs) }),
  };
}

/** The files that were compared, with their documents; in the order in which pairs count them. */
function programsOf(files, documents) {
  return files
    .filter(({ text }) => text !== undefined)
    .map((file, at) => ({ ...file, ...documents[at] }))
    .filter(({ program }) => program !== undefined)
    .map((file) => ({ ...file, note: file.note ?? noteOf(file.program) }));
}

function noteOf({ codes }) {
  return codes.length < guaranteedTokens
    ? `has ${codes.length} tokens, fewer than the shortest passage that is looked for`
    : undefined;
}

function problemsOf(files, documents) {
  let texts = 0;
  return files.flatMap(({ path, text, problem }) => {
    const found = text === undefined ? problem : documents[texts++].problem;
    return found === undefined ? [] : [{ path, ...found }];
  });
}

/** The pairs to list, the most similar first, of those the largest; equal ones in the order of files. */
function rank(pairs, { threshold, by, leastTokens }) {
  return pairs
    .filter((pair) => pair[by] >= threshold && pair.tokens >= leastTokens)
    .sort((one, other) => other[by] - one[by] || other.tokens - one.tokens);
}

/** `found` is in the order of pmap.pairs: (0, 1), (0, 2), …, (1, 2), … */
function withIndices(found, count) {
  const pairs = [];
  let at = 0;
  for (let a = 0; a < count; a++) {
    for (let b = a + 1; b < count; b++) {
      if (found[at] !== null) pairs.push({ a, b, ...found[at] });
      at += 1;
    }
  }
  return pairs;
}

function describePair({ a, b, similarity, containment, tokens, tiles }, index) {
  return {
    rank: index + 1,
    a: a.path,
    b: b.path,
    similarity,
    containment,
    tokens,
    matches: tiles.map(([startA, startB, length]) => {
      return { tokens: length, a: rangeOf(a, startA, length), b: rangeOf(b, startB, length) };
    }),
  };
}

/** Returns the range of a run of tokens; the last line and column are those of its last character. */
function rangeOf({ places: { starts, ends, lineStarts } }, start, length) {
  const first = placeOf(lineStarts, starts[start]);
  const last = placeOf(lineStarts, ends[start + length - 1] - 1);
  return {
    firstLine: first.line,
    firstColumn: first.column,
    lastLine: last.line,
    lastColumn: last.column,
  };
}

function findPlanted(planted, pairs) {
  const ranks = new Map(pairs.map(({ rank, a, b }) => [keyOf(a, b), rank]));
  const all = planted.map((pair) => ({
    ...pair,
    rank: ranks.get(keyOf(pair.original, pair.copy)),
  }));
  const missing = all.filter(({ rank }) => rank === undefined);
  const foundRanks = all.flatMap(({ rank }) => rank ?? []);
  return {
    count: planted.length,
    missing: missing.map(({ original, copy }) => ({ original, copy })),
    lowestRank: Math.max(0, ...foundRanks),
  };
}

const keyOf = (a, b) => [a, b].sort().join('\0');
