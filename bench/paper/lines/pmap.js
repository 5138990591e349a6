// manycore: the plain program with `pmap` for `map`.
import { readFileSync } from 'node:fs';
import { pmap } from 'manycore';
import { similarity } from './similarity.js';

export async function compareAll(pairs) {
  return await pmap(pairs, ([a, b]) =>
    similarity(readFileSync(a, 'utf8'), readFileSync(b, 'utf8')),
  );
}
