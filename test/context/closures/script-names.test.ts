// Names of scripts as the native reader finds them.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import vm from 'node:vm';
import { closureReader } from '../../../src/context/closures/closure-reader.js';
import { withoutNativeCapture } from '../../support/closures.js';

const skip = withoutNativeCapture();
/** The value of a text that is evaluated at the top. */
function evaluated(text: string): unknown {
  return Reflect.apply(Reflect.get(globalThis, 'eval'), undefined, [text]);
}

function nameOf(fn: unknown): string | null | undefined {
  return closureReader()?.scriptName(Object(fn));
}

test('a function has the name of its script, as V8 has it', { skip }, () => {
  const long = `/${'ä'.repeat(300)}.js`;
  assert.equal(
    nameOf(() => 1),
    import.meta.url,
  );
  assert.equal(nameOf(class {}), import.meta.url);
  assert.equal(nameOf(createRequire(import.meta.url)), 'node:internal/modules/helpers');
  assert.equal(nameOf(vm.runInThisContext('() => 1', { filename: '/a b.cjs' })), '/a b.cjs');
  assert.equal(nameOf(vm.runInThisContext('() => 1', { filename: long })), long);
  assert.equal(nameOf(vm.runInNewContext('() => 1', {}, { filename: 'other' })), 'other');
  assert.equal(nameOf(evaluated('() => 1\n//# sourceURL=given')), 'given');
});

test('code without a name has an empty one, and what is no code has none', { skip }, () => {
  assert.equal(nameOf(evaluated('() => 1')), '');
  const fn = (): number => 1;
  for (const other of [Math.max, fn.bind(1), new Proxy(fn, {}), {}, [1]]) {
    assert.equal(nameOf(other), null);
  }
});
