// How similar two programs are: what runs for every pair, so it takes little in (token codes and
// fingerprints, see document.js) and gives little back. It is a module of its own because workers import
// it: nothing here reads files or parses Java.
import { tile } from './tiling.js';
import { countShared, guaranteedTokens } from './winnow.js';

// A pair that shares a smaller part of the smaller one's fingerprints is dropped. A program has about one
// fingerprint for 5 tokens, and a passage, cut up in the worst way, is sure of one for 28: who has a
// tenth of the tokens in common has hardly less than 0.018 of the fingerprints.
const leastShare = 0.015;

/**
 * `null` when two programs share too few fingerprints, else what they have in common:
 * `similarity` is the part of both that is in tiles, `containment` the part of the smaller one, both
 * from 0 to 1; `tiles` is as tiling.js gives them.
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
