// A runtime whose objects have another layout: captured variables are read by the inspector, and nothing crashes.
// Each number of the layout is replaced in the memory of a child; a symbol that is missing has another name there.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { closureReader } from '../../../src/context/closures/closure-reader.js';

const child = fileURLToPath(new URL('./other-layouts-child.js', import.meta.url));
const hasMemory = process.platform === 'linux' && closureReader() !== undefined;
const skip = !hasMemory && 'there is no native reader, or no /proc/self/mem';

const refusals = [
  'functions have another layout in this runtime',
  'this runtime does not export the layout of functions',
];

async function resultsOf(env: NodeJS.ProcessEnv = {}): Promise<[what: string, result: string][]> {
  const { stdout } = await promisify(execFile)(process.execPath, [child], {
    env: { ...process.env, NODE_TEST_CONTEXT: '', ...env },
    timeout: 60_000,
  });
  return stdout
    .trim()
    .split('\n')
    .map((line) => {
      const [what = '', result = ''] = line.split(': ');
      return [what, result];
    });
}

test('another layout is refused, or read right', { skip }, async () => {
  const results = (await resultsOf()).filter(([, result]) => result !== 'begun');
  for (const [what, result] of results) {
    const isKnown = result === 'right' || refusals.includes(result);
    assert.ok(isKnown, `${what}: ${result}`);
    if (what === 'as it is') assert.equal(result, 'right');
    const isOptional = what.includes('v8dbg_type_');
    if (what.startsWith('without ')) assert.equal(result, isOptional ? 'right' : refusals[1], what);
  }
  const needed = results.filter(([what]) => !what.includes('v8dbg_type_'));
  const refused = needed.filter(([, result]) => result !== 'right');
  assert.ok(refused.length > needed.length / 2, `${refused.length} of ${needed.length}`);
});

test('a version of Node that was not tested is refused', { skip }, async () => {
  const results = await resultsOf({ MANYCORE_REFUSE: 'node-version' });
  assert.deepEqual(results[0], ['as it is', 'not tested with this version of Node']);
});
