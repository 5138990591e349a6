// Greedy string tiling: finds the passages of one program that the other has too.
//
// Source: Wise (1993), "String similarity via greedy string tiling and running Karp-Rabin matching". The
// longest common passage that no tile covers yet becomes a tile, again and again until none of `leastTokens`
// is left. The order of passages does not matter, so moved methods are found. Long ones go first, so a copied
// method is one tile and not many.
//
// Comparing every place with every place each time would be cubic. As in the paper, runs of one length are
// found by their rolling hash, long ones first: a file that repeats itself is mostly covered before the
// search for its many short repetitions. One search finds all its passages. A passage that meanwhile was
// covered in part is searched again without that part, so nothing is searched twice. In files of endless
// repetition that is not enough: each search is bounded.
import { hashGrams } from './winnow.js';

/** Ratio between the lengths of runs in one search and the next. */
const searchStep = 4;
// Limit of the tokens in all passages of one search; tables of zeros reach it. The search then stops, covers,
// and begins anew: its longest passage goes first.
const mostFoundTokens = 20_000_000;
// Places that are tried for one run, the first ones.
const mostPlaces = 1_000;

/**
 * The tiles of two programs, given as token codes: `[startA, startB, tokens]` each, by ascending
 * `startA`, none shorter than `leastTokens`. No token is in two tiles of its side. The tiles of
 * `(b, a)` are those of `(a, b)` with the sides changed.
 */
export function tile(a, b, leastTokens) {
  // The order of equally long passages depends on the side, so the sides have an order.
  if (isBefore(b, a)) return tile(b, a, leastTokens).map(swap).sort(byStart);
  const sides = [makeSide(a), makeSide(b)];
  const tiles = [];
  for (const length of searchLengths(Math.min(a.length, b.length), leastTokens)) {
    let isWhole = false;
    while (!isWhole) {
      const matches = findMatches(...sides, length);
      isWhole = matches.isWhole;
      coverLongestFirst(matches, ...sides, length, tiles);
    }
  }
  return tiles.sort(byStart);
}

const swap = ([startA, startB, tokens]) => [startB, startA, tokens];
const byStart = ([left], [right]) => left - right;

function isBefore(a, b) {
  if (a.length !== b.length) return a.length < b.length;
  const at = a.findIndex((code, i) => code !== b[i]);
  return at >= 0 && a[at] < b[at];
}

/** Longest first, down to `leastTokens`; none when nothing can be that long. */
function searchLengths(mostTokens, leastTokens) {
  const lengths = [];
  for (let length = leastTokens; length <= mostTokens; length *= searchStep) {
    lengths.unshift(length);
  }
  return lengths;
}

function makeSide(codes) {
  return { codes, isCovered: new Uint8Array(codes.length), freeCount: codes.length };
}

function cover(side, start, tokens) {
  side.isCovered.fill(1, start, start + tokens);
  side.freeCount -= tokens;
}

/** Returns the number of uncovered tokens from each place on. */
function countFree({ isCovered }) {
  const free = new Uint32Array(isCovered.length);
  for (let at = isCovered.length - 1, run = 0; at >= 0; at--) {
    run = isCovered[at] ? 0 : run + 1;
    free[at] = run;
  }
  return free;
}

/** All passages of `length` or more that are free in both programs and cannot be made longer. */
function findMatches(a, b, length) {
  const matches = new Matches();
  const [freeA, freeB] = [countFree(a), countFree(b)];
  const places = new Places(hashGrams(a.codes, length), freeA, length);
  const hashes = hashGrams(b.codes, length);
  for (let j = 0; j < hashes.length && matches.isWhole; j++) {
    if (freeB[j] < length) continue;
    let tried = 0;
    for (let i = places.first(hashes[j]); i >= 0 && tried < mostPlaces; i = places.after(i)) {
      if (!matches.isWhole) break;
      tried += 1;
      if (isContinued(a, b, i, j)) continue;
      const tokens = countCommon(a.codes, b.codes, i, j, Math.min(freeA[i], freeB[j]));
      if (tokens >= length) matches.add(i, j, tokens);
    }
  }
  return matches;
}

/** True: the passage at these places begins further left. */
function isContinued(a, b, i, j) {
  if (i === 0 || j === 0 || a.isCovered[i - 1] || b.isCovered[j - 1]) return false;
  return a.codes[i - 1] === b.codes[j - 1];
}

function countCommon(a, b, i, j, most) {
  let count = 0;
  while (count < most && a[i + count] === b[j + count]) count += 1;
  return count;
}

function coverLongestFirst(matches, a, b, length, tiles) {
  for (let tokens = matches.longest; tokens >= length; tokens--) {
    for (const [i, j] of matches.take(tokens)) {
      if (Math.min(a.freeCount, b.freeCount) < length) return;
      for (const [from, to] of freeParts(a, b, i, j, tokens)) {
        const [startA, startB, left] = [i + from, j + from, to - from];
        if (left < tokens) {
          if (left >= length) matches.add(startA, startB, left);
          continue;
        }
        cover(a, startA, tokens);
        cover(b, startB, tokens);
        tiles.push([startA, startB, tokens]);
      }
    }
  }
}

/** Returns the parts of a passage that no tile covers, in either program: half-open ranges within it. */
function freeParts(a, b, i, j, tokens) {
  const parts = [];
  let from = -1;
  for (let at = 0; at <= tokens; at++) {
    const isFree = at < tokens && !a.isCovered[i + at] && !b.isCovered[j + at];
    if (isFree && from < 0) from = at;
    if (!isFree && from >= 0) {
      parts.push([from, at]);
      from = -1;
    }
  }
  return parts;
}

/** Places of the runs of a program, by their hash: chains in one table, earlier places first. */
class Places {
  #hashes;
  #heads;
  #next;
  #mask;

  constructor(hashes, free, length) {
    const size = 2 ** Math.ceil(Math.log2(hashes.length + 1));
    this.#hashes = hashes;
    this.#mask = size - 1;
    this.#heads = new Int32Array(size).fill(-1);
    this.#next = new Int32Array(hashes.length);
    for (let at = hashes.length - 1; at >= 0; at--) {
      if (free[at] < length) continue;
      const slot = hashes[at] & this.#mask;
      this.#next[at] = this.#heads[slot];
      this.#heads[slot] = at;
    }
  }

  /** Returns the first place whose run has this hash, -1 when there is none. */
  first(hash) {
    return this.#skipOthers(this.#heads[hash & this.#mask], hash);
  }

  /** Returns the next place whose run has the hash of this one, or -1. */
  after(at) {
    return this.#skipOthers(this.#next[at], this.#hashes[at]);
  }

  #skipOthers(start, hash) {
    let at = start;
    while (at >= 0 && this.#hashes[at] !== hash) at = this.#next[at];
    return at;
  }
}

/** Passages by their length; of equally long ones the one that stands first in `a`, then in `b`. */
class Matches {
  longest = 0;
  #tokens = 0;
  /** @type {Map<number, number[]>} two places in one number: no file has 2 ** 26 tokens. */
  #places = new Map();

  /** True: the search that adds them may go on. */
  get isWhole() {
    return this.#tokens < mostFoundTokens;
  }

  add(i, j, tokens) {
    const places = this.#places.get(tokens) ?? [];
    if (places.length === 0) this.#places.set(tokens, places);
    places.push(i * 2 ** 26 + j);
    this.#tokens += tokens;
    this.longest = Math.max(this.longest, tokens);
  }

  /** All of this length. */
  take(tokens) {
    const places = this.#places.get(tokens) ?? [];
    this.#places.delete(tokens);
    return places.sort((x, y) => x - y).map((both) => [Math.floor(both / 2 ** 26), both % 2 ** 26]);
  }
}
