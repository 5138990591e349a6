// The dashboard's page as people see it, in a headless Chromium.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitFor } from '../support/index.js';
import { newPage, noBrowser } from './browser.js';
import { startDashboard } from './dashboard-process.js';
import { ownRuntime } from './runtime.js';
import { drawnPixels, openBusy, startWatched } from './watched.js';

const skip = noBrowser;

test('a program that runs is listed, opened, and its workers and tasks are drawn', {
  skip,
}, async (t) => {
  const page = await newPage(t);
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text());
  });
  const asked = new Set<string>();
  page.on('request', (request) => asked.add(new URL(request.url()).origin));
  const watched = await startWatched(t);
  await openBusy(page, watched);
  const { child, dashboard } = watched;
  assert.equal(new URL(page.url()).hash, `#${child.pid}`);
  assert.ok(!page.url().includes('token'));
  await page
    .getByText(/^worker \d+$/)
    .first()
    .waitFor();
  const canvas = page.getByRole('img', { name: 'Activity of 1 workers in the last 30 seconds' });
  await canvas.waitFor();
  const first = await waitFor(async () => (await drawnPixels(page)) || undefined);
  await waitFor(async () => (await drawnPixels(page)) > first);
  await page.getByRole('heading', { name: 'Task durations' }).waitFor();
  await page.getByText('Of the last half minute, while this page was open.').waitFor();
  await page.getByText('Wait and run p99 count since it was opened.').waitFor();
  await page.getByRole('cell', { name: 'slowFail' }).first().waitFor();
  await page
    .getByRole('region', { name: 'Event loops' })
    .getByRole('cell', { name: 'main' })
    .waitFor();
  assert.deepEqual(problems, []);
  assert.deepEqual([...asked], [dashboard.origin]);
  child.kill('SIGKILL');
  await page.getByText(`Program ${child.pid} has ended, or does not exist.`).waitFor();
});

test('a wrong token shows one sentence', { skip }, async (t) => {
  ownRuntime(t);
  const { origin } = await startDashboard(t, '--port', '0');
  const page = await newPage(t);
  const response = await page.goto(`${origin}/?token=wrong`);
  assert.equal(response?.status(), 401);
  assert.match((await page.textContent('body')) ?? '', /^This dashboard needs its token: .*\.\n$/);
});
