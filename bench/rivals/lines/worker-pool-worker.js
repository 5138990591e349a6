// Module for the threads of worker-pool.js.
import { readFileSync } from 'node:fs';
import { similarity } from '../../paper/lines/similarity.js';

export default function compare([a, b]) {
  return similarity(readFileSync(a, 'utf8'), readFileSync(b, 'utf8'));
}
