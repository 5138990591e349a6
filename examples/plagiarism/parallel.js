// The whole computation: texts in, results out. sequential.js and parallel.js differ only in the line that
// imports `pmap`.
import { pmap } from 'manycore';
import { compare } from './compare.js';
import { makeDocument } from './document.js';

/**
 * Compares texts of Java files, each with each. `documents` are the results of makeDocument, in the order of
 * the texts. `found` are the results of compare for every two with a program, in the order of pmap.pairs.
 */
export async function check(texts) {
  const documents = await pmap(texts, makeDocument);
  const programs = documents.flatMap(({ program }) => program ?? []);
  const found = await pmap.pairs(programs, compare);
  return { documents, found };
}
