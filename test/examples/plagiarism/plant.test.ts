// Planted copies: what each change does to the tokens, and that the checker puts the copies on top.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { random } from '../../support/index.js';
import { changes, kinds, plant, sequential, tokenize } from './modules.js';

const originals = ['anna/Library', 'carla/BookStore', 'dora/Matrix', 'emil/Words'].map((name) =>
  readFileSync(`examples/plagiarism/sample/${name}.java`, 'utf8'),
);
const [library = ''] = originals;

const kindsOf = (text: string) => Array.from(tokenize(text).codes, (code) => kinds[code] ?? '');

test('a copy with other names has other names, comments and layout, and the same tokens', (t) => {
  const copy = plant(library, { seed: random(t).seed, done: ['renamed'] });
  assert.deepEqual(kindsOf(copy), kindsOf(library));
  assert.doesNotMatch(copy, /Library|borrowers|giveBack|favourite|lends books/);
  assert.match(copy, /String|HashMap|"count is "/); // names from elsewhere, and strings
});

test('a copy with methods in another order has the same tokens in another order', (t) => {
  const copy = plant(library, { seed: random(t).seed, done: ['reordered'] });
  assert.deepEqual(kindsOf(copy).sort(), kindsOf(library).sort());
});

test('edited copies have statements more than their original, and none less', () => {
  const counts = Array.from({ length: 20 }, (_, seed) => {
    return kindsOf(plant(library, { seed, done: ['edited'] })).length;
  });
  const count = kindsOf(library).length;
  assert.ok(Math.min(...counts) >= count && Math.max(...counts) > count + 5, `${counts}`);
});

test('a copy is as correct as its original, and the same for the same seed', (t) => {
  const { seed } = random(t);
  for (const text of originals) {
    const copy = plant(text, { seed });
    assert.equal(tokenize(copy).errorCount, tokenize(text).errorCount, copy);
    assert.equal(plant(text, { seed }), copy);
    assert.notEqual(plant(text, { seed: seed + 1 }), copy);
  }
});

test('every planted pair ranks above every other pair', async (t) => {
  const { seed } = random(t);
  const files = originals.flatMap((text, origin) =>
    [[], ...changes.map((_, last) => changes.slice(0, last + 1))].map((done, at) => ({
      origin,
      text: plant(text, { seed: seed + at, done }),
    })),
  );
  const { found } = await sequential.check(files.map(({ text }) => text));
  const pairs = files.flatMap((a, i) => files.slice(i + 1).map((b) => a.origin === b.origin));
  const planted = found.filter((_, at) => pairs[at]).map((pair) => pair?.similarity ?? 0);
  const others = found.filter((_, at) => !pairs[at]).map((pair) => pair?.similarity ?? 0);
  assert.equal(planted.length, 24);
  const [least, most] = [Math.min(...planted), Math.max(...others)];
  assert.ok(least > most, `${least} of a planted pair, ${most} of another`);
});
