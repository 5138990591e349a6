// The example of plug-ins: useful ones get their answers, hostile ones are ended, and the server answers all the time.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { skip } from '../partitions/support.js';

const main = fileURLToPath(new URL('../../../examples/plugins/main.js', import.meta.url));

/** The outcome of each upload, by its name. */
const outcomes: readonly (readonly [name: string, outcome: RegExp])[] = [
  ['a price', /^25 /],
  ['a price in another currency', /^27 /],
  ['a filter that inverts', /^\[245,55,225,255\]/],
  ['reads the passwords', /^ENOENT: /],
  ['reads the environment', /^\[\]/],
  ['starts a program', /^"EPERM"/],
  ['connects to this server', /^"EPERM"/],
  ['kills all processes', /^(?:"ESRCH"|WORKER_EXITED: |undefined)/],
  ['never ends', /^TASK_TIMED_OUT: /],
  ['takes all memory', /^WORKER_EXITED: .*memory limit of 128 MiB/],
  ['answers with code', /^PARTITION_CODE: /],
  ['answers with too much', /^WORKER_EXITED: .*it sent a value of more/],
];

test('each plug-in gets its answer or its end, and the server goes on', { skip }, async () => {
  const child = spawn(process.execPath, [main], { stdio: ['ignore', 'pipe', 'pipe'] });
  const [output, errors] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  const lines = output.trimEnd().split('\n');
  for (const [name, outcome] of outcomes) {
    const found = lines.find((line) => line.slice(0, 28).trimEnd() === name) ?? '';
    assert.match(found.slice(28).trimStart(), outcome, name);
    const [, others = '0'] = /\((\d+) other answers\)$/.exec(found) ?? [];
    assert.ok(Number(others) > 0, `${name}: no other answers`);
  }
  assert.equal(lines.length, outcomes.length, errors);
});
