// `reloadAt`: reloads by schedule.

import assert from 'node:assert/strict';
import { renameSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { hasCode } from '../../src/errors.js';
import { serve } from '../../src/serve/index.js';
import { command, deadlineMs, startWith } from '../cli/serving.js';
import { runCommand } from '../faults/child.js';
import { waitFor } from '../support/index.js';
import { begin, bodyOf } from './client.js';
import { announced, folder, listens, open, program, skip } from './served.js';

const eachSecond = '* * * * * *';

test('a server reloads at its times, and answers what it has begun', { skip }, async (t) => {
  const server = await open(t, listens, { reloadAt: eachSecond });
  const [address] = server.addresses;
  assert.ok(typeof address === 'object');
  const held = await begin(address.port, '/?wait=1500');
  const generations = (): number[] => server.status().map(({ generation }) => generation);
  await waitFor(async () => {
    await bodyOf(address.port); // rejects where a client is lost
    return generations().some((generation) => generation >= 2);
  }, deadlineMs);
  assert.match(await held.body, /^began \d+:\d+$/);
});

test('a failed reload at its time is announced, and the next one goes on', { skip }, async (t) => {
  const app = program(t, 'app.mjs', `export default (q, r) => r.end('old');`);
  const failed = announced(t, 'manycore:server:reload-failed');
  const server = await open(t, app, { port: 0, reloadAt: eachSecond });
  const [address] = server.addresses;
  assert.ok(typeof address === 'object');
  // A reload may come at any moment: it finds the old text or the new one.
  const replace = (text: string): void => {
    writeFileSync(`${app}.new`, text);
    renameSync(`${app}.new`, app);
  };
  replace('null.here();');
  await waitFor(() => failed.length > 0, deadlineMs);
  assert.equal(failed[0]?.['app'], app);
  assert.match(String(failed[0]?.['why']), /serve on as they were: the program failed: /);
  assert.match(String(failed[0]?.['stack']), /app\.mjs:1:6/);
  assert.equal(await bodyOf(address.port), 'old');
  replace(`export default (q, r) => r.end('new');`);
  await waitFor(async () => (await bodyOf(address.port)) === 'new', deadlineMs);
});

for (const [pattern, why] of [
  ['x', /\(invalid configuration format \('x'\), exactly five, six, or seven /],
  ['0 25 * * *', /\(Invalid value for hour: 25\)$/],
  ['1/5 * * * *', /stepping with numeric prefix/],
  ['0 0 30 2 *', /a cron pattern with a time to come/],
  ['2020-01-01T00:00:00', /a cron pattern with a time to come/],
  ['@reboot', /@reboot is not supported/],
] as const) {
  test(`the pattern ${pattern} is refused`, { skip }, async () => {
    await assert.rejects(serve(listens, { reloadAt: pattern }), (error) => {
      assert.ok(hasCode(error, 'OPTION_INVALID'));
      assert.ok(error.message.startsWith(`reloadAt is "${pattern}": it must be a cron pattern`));
      assert.ok(error.message.includes("as '0 4 * * *'"));
      assert.match(error.message, why);
      return true;
    });
  });
}

test('--reload-at reloads a command at its times, and refuses a bad pattern', {
  skip,
}, async (t) => {
  const { lines, port } = await startWith(t, [
    '-P',
    '1',
    '-L',
    '1',
    '--reload-at',
    eachSecond,
    listens,
  ]);
  const first = await bodyOf(port);
  await waitFor(() => lines.includes('reloaded'), deadlineMs);
  await waitFor(async () => (await bodyOf(port)) !== first, deadlineMs);
  const env = { XDG_RUNTIME_DIR: folder(t) };
  const flags = ['serve', '--reload-at', '0 25 * * *', listens];
  const { status, stderr } = await runCommand(t, [process.execPath, command, ...flags], env);
  assert.equal(status, 2);
  assert.match(stderr, /^manycore: reloadAt is "0 25 \* \* \*": .*\(OPTION_INVALID\)\n$/);
});
