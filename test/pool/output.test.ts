// With onOutput, what workers write comes to a listener: all of it, before the end of its worker is reported.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type OutputSource, workerNumber } from '../../src/public.js';
import { waitFor } from '../support/index.js';
import { openPool, ways } from './calls/ways.js';

interface Heard extends OutputSource {
  readonly text: string;
}

for (const way of ways) {
  test(`${way.name}: stdout and stderr of a worker come with its number, letters whole`, async (t) => {
    const heard: Heard[] = [];
    const onOutput = (text: string, from: OutputSource): void => void heard.push({ text, ...from });
    const pool = openPool(t, { size: 1, onOutput }, way);
    const long = 'Ærøskøbing '.repeat(20_000);
    const worker = await pool.run((text: string) => {
      process.stdout.write(text);
      console.error('an error');
      return workerNumber();
    }, long);
    await pool.close();
    const all = (stream: string): string => {
      const own = heard.filter((each) => each.stream === stream && each.worker === worker);
      return own.map(({ text }) => text).join('');
    };
    assert.equal(all('stdout'), long);
    assert.equal(all('stderr'), 'an error\n');
    assert.equal(heard.length, heard.filter((each) => each.worker === worker).length);
  });
}

test('what a process wrote before it was killed comes before WORKER_EXITED', async (t) => {
  let text = '';
  const onOutput = (piece: string): void => {
    text += piece;
  };
  const pool = openPool(t, { size: 1, onOutput });
  const call = pool.run(async () => {
    const { writeSync } = await import('node:fs');
    writeSync(1, 'last words');
    process.kill(process.pid, 'SIGKILL');
    await new Promise(() => {});
  });
  await assert.rejects(call, { code: 'WORKER_EXITED' });
  assert.equal(text, 'last words');
});

test('a child of a worker that holds its output open does not hold its end up', async (t) => {
  const pool = openPool(t, { size: 1, onOutput: () => {} });
  const child = await pool.run(async () => {
    const { spawn } = await import('node:child_process');
    const { pid } = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 60_000)'], {
      stdio: 'inherit',
      detached: true,
    });
    return pid ?? 0;
  });
  t.after(() => process.kill(child, 'SIGKILL'));
  await pool.close();
  await waitFor(() => pool.stats().workers.length === 0);
});

test('a listener that is none', (t) => {
  assert.throws(() => openPool(t, Object({ onOutput: 'inherit' })), { code: 'OPTION_INVALID' });
});
