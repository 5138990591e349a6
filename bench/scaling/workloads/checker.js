// The plagiarism checker's comparison: no pair of programs twice, in a corpus of Java files and planted
// copies (bench/corpus/fetch.js). An item is a program and the half of all others that follow it. For an even
// number, the pairs that are half the corpus apart are left out. Workers get the data of all programs once.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { compare } from '../../../examples/plagiarism/compare.js';
import { makeDocument } from '../../../examples/plagiarism/document.js';

const corpus = fileURLToPath(new URL('../../corpus/java', import.meta.url));

/** True: the corpus has been fetched. */
export const hasCorpus = () => existsSync(corpus);

export default {
  says: 'a Java program compared with half of all others, by fingerprints and tiles',
  open() {
    const programs = readPrograms();
    const items = programs.map((_, index) => index);
    const followers = Math.floor((programs.length - 1) / 2);
    const map = (index) => {
      const found = [];
      for (let step = 1; step <= followers; step++) {
        const result = compare(programs[index], programs[(index + step) % programs.length]);
        found.push(result?.tokens ?? 0);
      }
      return found;
    };
    return { items, map };
  },
};

function readPrograms() {
  const files = readdirSync(corpus, { recursive: true }).filter((name) => name.endsWith('.java'));
  return files
    .sort()
    .flatMap((name) => makeDocument(readFileSync(join(corpus, name), 'utf8')).program ?? []);
}
