// Commands with a standard output that cannot be written, or without a reader.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { runCommand } from '../faults/child.js';
import { ownRuntime } from '../observe/runtime.js';
import { command } from './serving.js';

const skip = !existsSync('/dev/full') && 'there is no /dev/full';
const words = ['sh', '-c', 'exec "$@" >/dev/full', 'sh', process.execPath, command];

for (const flags of [
  ['--help'],
  ['serve', '--help'],
  ['--version'],
  ['status'],
  ['top', '--once'],
  ['top', '--json'],
  ['doctor'],
  ['dashboard', '--port', '0'],
  ['trace', '--seconds', '1', String(process.pid)],
]) {
  test(`${flags.slice(0, 3).join(' ')} on a full disk is one sentence`, { skip }, async (t) => {
    ownRuntime(t);
    const { status, stderr } = await runCommand(t, [...words, ...flags]);
    const message = stderr.replace(/^tracing process .*\n/, '');
    assert.match(
      message,
      /^manycore: standard output .*ENOSPC.*make room.* \(CLI_OUTPUT_FAILED\)\n$/,
    );
    assert.equal(status, 2);
  });
}

test('a reader that has gone is no error', async (t) => {
  ownRuntime(t);
  for (const flags of [['--help'], ['top', '--once'], ['dashboard', '--port', '0']]) {
    const line = '{ "$@"; echo "ended with $?" >&2; } | true';
    const ended = await runCommand(t, ['sh', '-c', line, 'sh', ...words.slice(4), ...flags]);
    assert.deepEqual(ended, { status: 0, stdout: '', stderr: 'ended with 0\n' }, flags.join(' '));
  }
});
