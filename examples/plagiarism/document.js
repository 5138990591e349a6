// Converts one file's text to the input of a comparison. The program travels to the workers, and therefore
// holds only token codes and fingerprints. The places of its tokens stay here for the report. Also judges
// whether the text is Java at all.
import { lineStartsOf, tokenize } from './java.js';
import { fingerprint } from './winnow.js';

// The grammar misreads some Java that compiles: in the worst file of three libraries once in ten tokens. In
// every other language it fails at least once in five.
const mostErrorsPerToken = 0.15;

/**
 * Returns `{ program: { codes, fingerprints }, places: { starts, ends, lineStarts } }`, see java.js and
 * winnow.js; or `{ problem: { kind, reason } }` for a text without Java code.
 */
export function makeDocument(text) {
  const { codes, starts, ends, errorCount, declarationCount } = tokenize(text);
  if (codes.length === 0) {
    return problem('no-code', 'has no code: only comments, imports or a package declaration');
  }
  if (declarationCount === 0 || errorCount > codes.length * mostErrorsPerToken) {
    return problem('not-java', 'is not Java, as far as the grammar can tell');
  }
  const places = { starts, ends, lineStarts: lineStartsOf(text) };
  return { program: { codes, fingerprints: fingerprint(codes) }, places };
}

function problem(kind, reason) {
  return { problem: { kind, reason } };
}
