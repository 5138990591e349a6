// The line that names the cause of a partition's end, out of output that is cut anywhere.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CauseLine } from '../../src/worker/partition/own-output.js';

const rows: readonly {
  readonly name: string;
  readonly output: string;
  readonly text: string;
  readonly isHeapFull?: true;
  readonly hasPanicked?: true;
}[] = [
  { name: 'no output', output: '', text: '' },
  { name: 'the last line that is not empty', output: 'one\ntwo\n\n \n', text: 'two' },
  { name: 'a line without an end', output: 'one\ntwo', text: 'two' },
  {
    name: 'a panic before what follows it',
    output: 'one\n[ 1.2] Kernel panic - not syncing: no init\nCPU: 0\n',
    text: 'Kernel panic - not syncing: no init',
    hasPanicked: true,
  },
  {
    name: 'the first of two panics',
    output: 'Kernel panic - one\nKernel panic - two',
    text: 'Kernel panic - one',
    hasPanicked: true,
  },
  {
    name: 'a full heap, and the stack behind it',
    output:
      'GCs\nFATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n 1: 0xb7',
    text: ' 1: 0xb7',
    isHeapFull: true,
  },
  {
    name: 'a heap whose compactor has failed, as the only line',
    output: 'FATAL ERROR: Zone Allocation failed - process out of memory',
    text: 'FATAL ERROR: Zone Allocation failed - process out of memory',
    isHeapFull: true,
  },
  {
    name: 'words about memory that V8 has not written',
    output: 'Error: FATAL ERROR: JavaScript heap out of memory\n',
    text: 'Error: FATAL ERROR: JavaScript heap out of memory',
  },
  { name: 'control characters', output: '\x1b]0;x\x07\n', text: '\ufffd]0;x\ufffd' },
];
for (const { name, output, text, isHeapFull = false, hasPanicked = false } of rows) {
  test(`the cause is found wherever output is cut: ${name}`, () => {
    for (let size = 1; size <= output.length + 1; size += 1) {
      const cause = new CauseLine();
      for (let at = 0; at < output.length; at += size) cause.add(output.slice(at, at + size));
      assert.deepEqual(
        [cause.text, cause.isHeapFull, cause.hasPanicked],
        [text, isHeapFull, hasPanicked],
        `parts of ${size}`,
      );
    }
  });
}

test('a line without an end takes no memory', () => {
  const cause = new CauseLine();
  for (let at = 0; at < 100; at += 1) cause.add('x'.repeat(2 ** 16));
  assert.ok(cause.text.length <= 1000);
});
