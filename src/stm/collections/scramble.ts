// Keys in an order of their own, and back: neighbours come far apart. Nothing is lost, so that no two keys meet.

import { checkKey, type Key } from './leaf.js';

/** An odd number near 2³² divided by the golden ratio (Knuth, The Art of Computer Programming 3, 6.4), and its inverse. */
const multiplier = 0x9e37_79b1;
const inverse = inverseOf(multiplier);

/** The inverse of an odd number modulo 2³², by Newton's method: each step doubles the bits that are right. */
function inverseOf(odd: number): number {
  let found = odd;
  for (let step = 0; step < 5; step += 1) {
    found = Math.imul(found, 2 - Math.imul(odd, found));
  }
  return found;
}

/** Throws `STM_VALUE_TOO_LARGE`. */
export function scrambled(key: Key): Key {
  if (typeof key === 'string') return checkKey(prefixOf(key) + key);
  return Number.isInteger(key) && (key | 0) === key ? Math.imul(key, multiplier) : key;
}

export function unscrambled(key: Key): Key {
  if (typeof key === 'string') return key.slice(prefixUnits);
  return Number.isInteger(key) && (key | 0) === key ? Math.imul(key, inverse) : key;
}

const prefixUnits = 2;

/** Two characters of a hash (FNV-1a, of code units). */
function prefixOf(text: string): string {
  let hash = 0x811c_9dc5;
  for (let at = 0; at < text.length; at += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x0100_0193);
  }
  return String.fromCharCode((hash >>> 8) & 0xff, (hash >>> 16) & 0xff);
}
