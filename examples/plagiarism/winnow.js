// Fingerprints of a program: few numbers, of which two programs share some when they share a passage.
//
// Winnowing, by Schleimer, Wilkerson and Aiken (2003), "Winnowing: local algorithms for document
// fingerprinting", SIGMOD. Every run of `gramTokens` tokens is hashed, and of each `windowGrams` hashes in a
// row the smallest is kept. A passage of `guaranteedTokens` in two programs fills a window in both, and both
// keep its smallest hash: programs without a common fingerprint share no such passage. Keeping every n-th
// hash would give as few, and no guarantee. Places of fingerprints are not kept: tiling.js finds them anew.

/** Shorter passages are not seen: `for (int i = 0; i < a.length; i++) {` alone has 17 tokens. */
export const guaranteedTokens = 20;
const gramTokens = 12;
const windowGrams = guaranteedTokens - gramTokens + 1;

// Odd, so that multiplying modulo 2 ** 32 loses nothing of a hash.
const base = 0x9e3779b1;

/** The fingerprints of a program, from its token codes: each once, ascending; none below `gramTokens`. */
export function fingerprint(codes) {
  const hashes = hashGrams(codes, gramTokens);
  const width = Math.min(windowGrams, hashes.length);
  const kept = new Set();
  for (let end = width; end <= hashes.length && width > 0; end++) {
    kept.add(hashes.subarray(end - width, end).reduce((least, hash) => Math.min(least, hash)));
  }
  return Uint32Array.from(kept).sort();
}

/** The hash of each run of `length` tokens, at the index where the run begins; computed by rolling. */
export function hashGrams(codes, length) {
  const hashes = new Uint32Array(Math.max(0, codes.length - length + 1));
  let leading = 1; // what the first token of a run was multiplied with: base ** length
  for (let i = 0; i < length; i++) leading = Math.imul(leading, base);
  let rolling = 0;
  for (let i = 0; i < codes.length; i++) {
    rolling = Math.imul(rolling, base) + codes[i] + 1;
    if (i >= length) rolling -= Math.imul(leading, codes[i - length] + 1);
    if (i >= length - 1) hashes[i - length + 1] = spread(rolling);
  }
  return hashes;
}

/** Mixes the bits (MurmurHash3's last step): the low ones of a product depend on few tokens. */
function spread(number) {
  let bits = number;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}

/** Returns how many numbers two ascending lists have in common. */
export function countShared(a, b) {
  let shared = 0;
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    const difference = a[i] - b[j];
    if (difference === 0) shared += 1;
    if (difference <= 0) i += 1;
    if (difference >= 0) j += 1;
  }
  return shared;
}
