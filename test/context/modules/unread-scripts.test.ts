// Modules that a call names without a need for their text. Parsing one holds the event loop up, this library's own
// longest.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import vm from 'node:vm';
import { type AnyFunction, createExporter } from '../../../src/context/index.js';
import { scriptsRead } from '../../../src/context/modules/scripts.js';
import { run } from '../../../src/public.js';
import { withoutNativeCapture } from '../../support/closures.js';

const require = createRequire(import.meta.url);

class Greeter {
  name = 'Ada';
  greet(): AnyFunction {
    return () => this.name;
  }
  greetElsewhere(): Promise<string> {
    return run(() => this.name);
  }
}

/** Exports the function; returns the number of scripts that were read for it. */
function readFor(fn: AnyFunction): number {
  const before = scriptsRead();
  createExporter().exportFunction(fn);
  return scriptsRead() - before;
}

test('a class that calls this library: only its own script is read', {
  skip: withoutNativeCapture(),
}, () => {
  assert.equal(readFor(new Greeter().greet()), 1);
});

test('an export of a CommonJS module: its script is not read', () => {
  const { parse } = require('acorn');
  const make: (parse: unknown) => AnyFunction = vm.runInThisContext(
    '(parse) => (text) => parse(text, { ecmaVersion: 2022 })',
  );
  assert.equal(readFor(make(parse)), 1);
});
