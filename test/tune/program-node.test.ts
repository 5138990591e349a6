import assert from 'node:assert/strict';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { programOf } from '../../src/tune/program/launch.js';
import { type ProgramNode, programNode } from '../../src/tune/program/program-node.js';
import { folderWith } from './running.js';

const noShell = process.platform === 'win32' && 'there is no shell';

function nodeOf(command: readonly string[]): ProgramNode {
  return programNode(programOf(command, { serve: false, main: '' }));
}

/** Returns a program called node that always prints this text. */
function nodeThatPrints(t: TestContext, text: string): string {
  const file = join(folderWith(t, { node: `#!/bin/sh\n${text}\n` }), 'node');
  chmodSync(file, 0o755);
  return file;
}

test("the version is that of the program's Node, not of ours", { skip: noShell }, (t) => {
  const file = nodeThatPrints(t, `echo '["99.1.0", 104857600]'`);
  assert.deepEqual(nodeOf([file, 'app.js']), { version: '99.1.0', defaultHeapMb: 100 });
});

test('a program without version output counts as our Node', { skip: noShell }, (t) => {
  const { node } = process.versions;
  for (const text of ['exit 3', 'echo hello', "echo '{}'", "echo '[1, 2]'"]) {
    assert.equal(nodeOf([nodeThatPrints(t, text), 'app.js']).version, node, text);
  }
  assert.equal(nodeOf(['/nowhere/node', 'app.js']).version, node);
  assert.equal(nodeOf(['npm', 'start']).version, node);
});

test('a limit that was set for all is not the default of V8', (t) => {
  const before = process.env['NODE_OPTIONS'];
  process.env['NODE_OPTIONS'] = '--max-old-space-size=100';
  t.after(() => {
    if (before === undefined) delete process.env['NODE_OPTIONS'];
    else process.env['NODE_OPTIONS'] = before;
  });
  const { version, defaultHeapMb } = nodeOf([process.execPath, 'app.js']);
  assert.equal(version, process.versions.node);
  assert.ok(defaultHeapMb > 200, String(defaultHeapMb));
});
