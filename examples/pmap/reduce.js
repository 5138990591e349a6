// Counts words: each worker counts those of its lines and adds its counts up, so that few objects come
// back.
import { pmap } from 'manycore';

const lines = Array.from({ length: 20_000 }, (_, index) => `${index % 3} and ${index % 2}`);

const counts = await pmap.reduce(
  lines,
  (line) => {
    const words = new Map();
    for (const word of line.split(' ')) words.set(word, (words.get(word) ?? 0) + 1);
    return words;
  },
  (left, right) => {
    for (const [word, count] of right) left.set(word, (left.get(word) ?? 0) + count);
    return left;
  },
  new Map(),
);

console.log([...counts].sort().join(' '));
