// The name that a function expression around a function gives itself.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { closureReader } from '../../../src/context/closures/closure-reader.js';
import { createExporter, createImporter } from '../../../src/context/index.js';
import { nativeBinding } from '../../../src/native.js';

const hasReader = nativeBinding() !== undefined && closureReader() !== undefined;
const skip = !hasReader && 'there is no native binary';

type Call = () => unknown;

async function call(fn: Call): Promise<unknown> {
  const exporter = createExporter();
  const importer = createImporter({ exporter: createExporter() });
  const { id, definitions, state } = exporter.exportFunction(fn);
  for (const each of definitions) await importer.define(each, exporter.definition(each));
  return importer.importFunction(id, state)();
}

const step = 2;

/** Functions that use such a name; each returns the same at home and as a copy. */
const makers: Readonly<Record<string, () => Call>> = {
  'the name alone'() {
    const made = function outer(depth: number): Call {
      return () => [typeof outer, depth];
    };
    return made(1);
  },
  'a name that hides a variable'() {
    const outer = 5;
    const made = function outer(depth: number): Call {
      return () => [typeof outer, depth];
    };
    return [made(1), outer][0] === outer ? () => outer : made(1);
  },
  'a call of it'() {
    const made = function outer(depth: number): number | Call {
      return depth === 0 ? step : () => outer(0);
    };
    const fn = made(1);
    return typeof fn === 'function' ? fn : () => fn;
  },
  'a parameter that hides it'() {
    // biome-ignore lint/suspicious/noRedeclare: the point of the test
    const made = function outer(outer: number): Call {
      return () => outer;
    };
    return made(7);
  },
  'a variable that hides it'() {
    const made = function outer(depth: number): Call {
      var outer = depth + 1;
      return () => outer;
    };
    return made(7);
  },
};

for (const [what, make] of Object.entries(makers)) {
  test(`${what} is the same at home and there`, { skip }, async () => {
    const fn = make();
    assert.deepEqual(await call(fn), fn());
  });
}
