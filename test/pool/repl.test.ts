// The first place where one tries a library: node's own prompt, where the modules of Node are globals.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { waitFor } from '../support/index.js';
import { deadlineMs } from './calls/ways.js';

const library = new URL('../../src/public.js', import.meta.url).href;

test('calls work at the prompt of node', async (t) => {
  const node = spawn(process.execPath, ['-i'], { stdio: ['pipe', 'pipe', 'pipe'] });
  t.after(() => node.kill('SIGKILL'));
  let said = '';
  for (const output of [node.stdout, node.stderr]) {
    output.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
  }
  const ended = once(node, 'exit');
  const lines = [
    `const { run, pmap } = await import(${JSON.stringify(library)});`,
    '(await run((x) => x * 2, 2100)) + 42;',
    "(await pmap([1, 2], (x) => x * 2)).join('-then-');",
    '(await run(() => [typeof os.cpus, typeof crypto.subtle, typeof globalThis.path])).join();',
    "(await run(() => [_, typeof require('node:os').cpus, typeof module.exports])).join();",
    '.exit',
  ];
  for (const line of lines) {
    const isReady = (): boolean => said.endsWith('> ') || node.exitCode !== null;
    await waitFor(isReady, deadlineMs, 'node waits for a line');
    said += ' ';
    node.stdin.write(`${line}\n`);
  }
  const [code] = await ended;
  assert.match(said, /4242[^]*2-then-4/);
  const last = 'function,object,object';
  assert.ok(said.includes(`'${last}'`), said);
  assert.ok(said.includes(`'${last},function,object'`), said);
  assert.equal(code, 0, said);
});
