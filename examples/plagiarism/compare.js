// Similarity of two programs: the code that runs for every pair. Its input is small (token codes and
// fingerprints, see document.js), and so is its output. It is a module of its own because workers import it:
// nothing here reads files or parses Java.
import { tile } from './tiling.js';
import { countShared, guaranteedTokens } from './winnow.js';

// Pairs that share a smaller part of the smaller one's fingerprints are dropped. A program has about one
// fingerprint for 5 tokens; a passage, cut up in the worst way, is sure of one for 28. So programs with a
// tenth of their tokens in common have hardly less than 0.018 of the fingerprints.
const leastShare = 0.015;

/**
 * Returns `null` when two programs share too few fingerprints, else `{ similarity, containment, tiles }`.
 * `similarity` is the part of both that is in tiles, `containment` the part of the smaller one, both from 0
 * to 1. `tiles` has the format of tiling.js.
 */
export function compare(a, b) {
  const shared = countShared(a.fingerprints, b.fingerprints);
  const fewer = Math.min(a.fingerprints.length, b.fingerprints.length);
  if (shared === 0 || shared < leastShare * fewer) return null;
  const tiles = tile(a.codes, b.codes, guaranteedTokens);
  const matched = tiles.reduce((sum, [, , tokens]) => sum + tokens, 0);
  const [sizeA, sizeB] = [a.codes.length, b.codes.length];
  return {
    similarity: (2 * matched) / (sizeA + sizeB),
    containment: matched / Math.min(sizeA, sizeB),
    tokens: matched,
    tiles,
  };
}
