// The first failure ends a map, and its error names the item; with `settled` every item has its outcome.
import { pmap } from 'manycore';

const texts = ['[1]', '[1, 2]', '[1, 2', '[]'];
const count = (text) => JSON.parse(text).length;

try {
  await pmap(texts, count);
} catch (error) {
  console.log(error.name, 'for item', error.itemIndex);
}

const outcomes = await pmap(texts, count, { settled: true });
const shown = outcomes.map((each) => (each.status === 'fulfilled' ? each.value : each.status));
console.log(shown.join(', '));
