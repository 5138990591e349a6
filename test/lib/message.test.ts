import assert from 'node:assert/strict';
import { test } from 'node:test';
import vm from 'node:vm';
import { errorOf, messageOf } from '../../src/lib/index.js';

test('an error of another realm is quoted without its class', () => {
  const error: unknown = vm.runInNewContext('new TypeError("why")');
  assert.equal(messageOf(error), 'why');
  assert.equal(errorOf(error), error);
});

test('a value other than an error is quoted as its text', () => {
  assert.equal(messageOf(5), '5');
  assert.equal(errorOf('why').message, 'why');
  assert.equal(messageOf(Object.create(null)), 'a value that has no text');
});
