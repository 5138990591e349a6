// The plain program: one item after the other.
import { readFileSync } from 'node:fs';
import { similarity } from './similarity.js';

export async function compareAll(pairs) {
  return pairs.map(([a, b]) => similarity(readFileSync(a, 'utf8'), readFileSync(b, 'utf8')));
}
