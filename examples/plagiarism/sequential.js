// The whole computation: texts in, results out. sequential.js and parallel.js are the same file but for
// the line that says where `pmap` is from.
import { pmap } from './alone.js';
import { compare } from './compare.js';
import { makeDocument } from './document.js';

/**
 * Compares texts of Java files, each with each. `documents` are as makeDocument gives them, in the order
 * of the texts; `found` is what compare gives for every two that have a program, in the order of pmap.pairs.
 */
export async function check(texts) {
  const documents = await pmap(texts, makeDocument);
  const programs = documents.flatMap(({ program }) => program ?? []);
  const found = await pmap.pairs(programs, compare);
  return { documents, found };
}
