// Similarity of two programs: the measures, and the pairs that are dropped before.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  compare,
  fingerprint,
  guaranteedTokens,
  makeDocument,
  type Program,
  tile,
} from './modules.js';

const read = (path: string) => readFileSync(`examples/plagiarism/sample/${path}`, 'utf8');

function programOf(text: string): Program {
  const { program, problem } = makeDocument(text);
  assert.ok(program !== undefined, problem?.reason);
  return program;
}

function fromCodes(codes: readonly number[]): Program {
  const all = Uint8Array.from(codes);
  return { codes: all, fingerprints: fingerprint(all) };
}

test('a file and itself are the same, and a renamed one as well', () => {
  const text = read('anna/Library.java');
  const renamed = text
    .replaceAll('Library', 'Kiosk')
    .replaceAll('copies', 'x')
    .replaceAll('title', 'y');
  for (const other of [text, renamed]) {
    const found = compare(programOf(text), programOf(other));
    assert.deepEqual([found?.similarity, found?.containment, found?.tiles.length], [1, 1, 1]);
  }
});

test('a copied file is similar, one with the same task is not', () => {
  const [anna, ben, carla] = ['anna/Library', 'ben/Rental', 'carla/BookStore'].map((name) =>
    programOf(read(`${name}.java`)),
  );
  assert.ok(anna !== undefined && ben !== undefined && carla !== undefined);
  assert.ok((compare(anna, ben)?.similarity ?? 0) > 0.9);
  assert.ok((compare(anna, carla)?.similarity ?? 0) < 0.2);
});

test('both measures are from 0 to 1, containment is not the smaller, and both sides are equal', () => {
  const codes = fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 120 });
  fc.assert(
    fc.property(codes, codes, codes, (common, one, other) => {
      const [a, b] = [fromCodes([...common, ...one]), fromCodes([...other, ...common])];
      const found = compare(a, b);
      const turned = compare(b, a);
      assert.equal(turned?.similarity, found?.similarity);
      assert.equal(turned?.containment, found?.containment);
      if (found === null) return;
      assert.ok(found.similarity >= 0 && found.containment <= 1);
      assert.ok(found.containment >= found.similarity);
      assert.equal((2 * found.tokens) / (a.codes.length + b.codes.length), found.similarity);
    }),
  );
});

test('programs that share no fingerprint are dropped, and have no tile', () => {
  const codes = fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 100 });
  fc.assert(
    fc.property(codes, codes, (one, other) => {
      const [a, b] = [fromCodes(one), fromCodes(other)];
      if (a.fingerprints.some((each) => b.fingerprints.includes(each))) return;
      assert.equal(compare(a, b), null);
      assert.deepEqual(tile(a.codes, b.codes, guaranteedTokens), []);
    }),
  );
});

test('a tenth in common is not dropped, however it is cut up', () => {
  // Passages of 28 tokens, the length with the fewest fingerprints that are sure.
  const random = (first: number, count: number) =>
    Array.from({ length: count }, (_, at) => ((at + first) * (at + first) * 31 + 7 * at) % 113);
  const passages = Array.from({ length: 10 }, (_, at) => random(at * 1000, 28));
  const a = passages.flatMap((passage, at) => [...passage, ...random(50_000 + at * 999, 252)]);
  const b = passages.flatMap((passage, at) => [...passage, ...random(90_000 + at * 777, 252)]);
  assert.ok((compare(fromCodes(a), fromCodes(b))?.similarity ?? 0) >= 0.1);
});
