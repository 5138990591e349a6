// Messages to systemd where the native core, which sends them, is missing.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';

const systemd = new URL('../../src/cli/commands/serve/systemd.js', import.meta.url).href;
const text = `
  const { notifier } = await import(${JSON.stringify(systemd)});
  const { ready, reloading } = notifier();
  ready('serving');
  reloading();`;

function warningsOf(env: Readonly<Record<string, string>>): string[] {
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', text], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], MANYCORE_NATIVE: 'off', ...env },
  });
  assert.equal(status, 0, stderr);
  return stderr.split('\n').filter((line) => line.includes('[NATIVE_MISSING]'));
}

test('without the core one warning reports that systemd gets no messages', () => {
  const warnings = warningsOf({ NOTIFY_SOCKET: '/nowhere/notify', WATCHDOG_USEC: '200000' });
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? '', /systemd gets no messages: .*; use Type=exec$/);
});

test('without systemd there is none', () => {
  assert.deepEqual(warningsOf({}), []);
});
