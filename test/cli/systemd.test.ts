// Messages to systemd where the native core, which sends them, is missing.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { nativeProblem } from '../../src/native.js';

const systemd = new URL('../../src/cli/commands/serve/systemd.js', import.meta.url).href;
const text = `
  const { notifier } = await import(${JSON.stringify(systemd)});
  const { ready, reloading } = notifier();
  ready('serving');
  reloading();`;

/** Number of timers that the notifier arms. */
function timersOf(env: Readonly<Record<string, string>>): number {
  const counting = `
    let timers = 0;
    const { setInterval: original } = globalThis;
    globalThis.setInterval = (...args) => {
      timers += 1;
      return original(...args);
    };
    ${text}
    console.log('timers', timers);
    process.exit();`;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--input-type=module', '-e', counting],
    { encoding: 'utf8', env: { PATH: process.env['PATH'], ...env } },
  );
  assert.equal(status, 0, stderr);
  return Number(/^timers (\d+)$/m.exec(stdout)?.[1]);
}

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
  assert.match(
    warnings[0] ?? '',
    /systemd gets no messages: .*; use Type=exec without WatchdogSec$/,
  );
});

test('without a watchdog the advice does not mention one', () => {
  const [warning = ''] = warningsOf({ NOTIFY_SOCKET: '/nowhere/notify' });
  assert.match(warning, /; use Type=exec$/);
});

test('a timer for the watchdog runs only where messages can be sent', {
  skip: nativeProblem()?.message,
}, () => {
  const watchdog = { WATCHDOG_USEC: '200000' };
  const socket = { NOTIFY_SOCKET: '/nowhere/notify' };
  assert.equal(timersOf({ ...socket, ...watchdog }), 1);
  assert.equal(timersOf({ ...socket, ...watchdog, MANYCORE_NATIVE: 'off' }), 0);
  assert.equal(timersOf(watchdog), 0);
  assert.equal(timersOf(socket), 0);
});

test('without systemd there is none', () => {
  assert.deepEqual(warningsOf({}), []);
});
