// Fingerprints: the promise that winnowing makes, and the arithmetic below it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { countShared, fingerprint, guaranteedTokens, hashGrams } from './modules.js';

const codes = (least: number, most: number) =>
  fc
    .array(fc.integer({ min: 0, max: 3 }), { minLength: least, maxLength: most })
    .map((numbers) => Uint8Array.from(numbers));

test('two programs that have a passage of the guaranteed length in common share a fingerprint', () => {
  const [around, passage] = [codes(0, 60), codes(guaranteedTokens, guaranteedTokens)];
  fc.assert(
    fc.property(around, around, around, around, passage, (a, b, c, d, common) => {
      const one = fingerprint(Uint8Array.from([...a, ...common, ...b]));
      const other = fingerprint(Uint8Array.from([...c, ...common, ...d]));
      assert.ok(countShared(one, other) > 0);
    }),
  );
});

test('a rolled hash is that of its run alone, wherever the run stands', () => {
  fc.assert(
    fc.property(codes(0, 80), fc.integer({ min: 1, max: 30 }), (all, length) => {
      const hashes = hashGrams(all, length);
      assert.equal(hashes.length, Math.max(0, all.length - length + 1));
      hashes.forEach((hash, start) => {
        assert.equal(hash, hashGrams(all.slice(start, start + length), length)[0]);
      });
    }),
  );
});

test('fingerprints ascend, each once; a program shorter than a gram has none', () => {
  fc.assert(
    fc.property(codes(12, 200), (all) => {
      const prints = [...fingerprint(all)];
      assert.ok(prints.length > 0);
      assert.deepEqual(
        prints,
        [...new Set(prints)].sort((a, b) => a - b),
      );
    }),
  );
  assert.equal(fingerprint(Uint8Array.from({ length: 11 }, (_, at) => at)).length, 0);
  assert.equal(fingerprint(new Uint8Array()).length, 0);
});

test('a program has far fewer fingerprints than tokens', () => {
  const all = Uint8Array.from({ length: 3000 }, (_, at) => (at * at * 7919) % 101);
  const count = fingerprint(all).length;
  assert.ok(count < all.length / 3, `${count}`);
});

test('the shared part of two lists is their intersection', () => {
  const lists = fc
    .uniqueArray(fc.integer({ min: 0, max: 40 }))
    .map((numbers) => Uint32Array.from(numbers).sort());
  fc.assert(
    fc.property(lists, lists, (a, b) => {
      assert.equal(countShared(a, b), a.filter((number) => b.includes(number)).length);
    }),
  );
});
