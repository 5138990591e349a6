// The dashboard's page as people see it, in a headless Chromium.

import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type TestContext, test } from 'node:test';
import type { Page } from 'playwright-core';
import { childrenOf, waitFor } from '../support/index.js';
import { newPage, noBrowser } from './browser.js';
import { end, startDashboard } from './dashboard-process.js';
import { ownRuntime } from './runtime.js';

const skip = noBrowser;
const app = new URL('./apps/busy.js', import.meta.url);
const sturdy = new URL('./apps/two-workers.js', import.meta.url);
const resting = new URL('./apps/resting.js', import.meta.url);
const many = new URL('./apps/many-loops.js', import.meta.url);
const serving = new URL('./apps/serving.js', import.meta.url);
const phone = { width: 360, height: 740 };

function startApp(t: TestContext): ChildProcess {
  const child = fork(app);
  t.after(() => child.kill('SIGKILL'));
  return child;
}

/** Starts a dashboard and a program, which is opened on the page. */
async function openProgram(t: TestContext, page: Page) {
  ownRuntime(t);
  const child = startApp(t);
  const dashboard = await startDashboard(t, '--port', '0');
  await page.goto(dashboard.address);
  await page.getByRole('link', { name: 'busy.js' }).click();
  await page.getByRole('heading', { name: 'Pool 1' }).waitFor();
  return { child, dashboard };
}

/** Number of drawn pixels of the time line. */
async function drawnPixels(page: Page): Promise<number> {
  return await page.evaluate(`(() => {
    const canvas = document.querySelector('.lanes canvas');
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let at = 3; at < data.length; at += 4) if (data[at] > 0) count += 1;
    return count;
  })()`);
}

test('a program that runs is listed, opened, and its workers and tasks are drawn', {
  skip,
}, async (t) => {
  const page = await newPage();
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text());
  });
  const asked = new Set<string>();
  page.on('request', (request) => asked.add(new URL(request.url()).origin));
  const { child, dashboard } = await openProgram(t, page);
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

test('a pool that has no worker yet, or none any more, is drawn when it has one', {
  skip,
}, async (t) => {
  ownRuntime(t);
  const child = fork(resting);
  t.after(() => child.kill('SIGKILL'));
  const { address } = await startDashboard(t, '--port', '0');
  const page = await newPage();
  await page.goto(address);
  await page.getByRole('link', { name: 'resting.js' }).click();
  for (let round = 0; round < 2; round += 1) {
    await page.getByText('No worker runs.').waitFor();
    child.send('work');
    await page.getByText(/^worker \d+$/).waitFor();
    await waitFor(async () => (await drawnPixels(page)) > 0);
    child.send('rest');
  }
});

test('a worker that is killed is noted, and so is the one that takes its place', {
  skip,
}, async (t) => {
  ownRuntime(t);
  const child = fork(sturdy);
  t.after(() => child.kill('SIGKILL'));
  const { address } = await startDashboard(t, '--port', '0');
  const page = await newPage();
  await page.goto(address);
  await page.getByRole('link', { name: 'two-workers.js' }).click();
  await page.locator('.lane-names li').nth(1).waitFor();
  const [victim] = await waitFor(() => {
    const workers = childrenOf(child.pid ?? 0);
    return workers.length === 2 && workers;
  });
  assert.ok(victim !== undefined);
  process.kill(victim.pid, 'SIGKILL');
  await page.getByText(/worker \d of pool 1 has ended$/).waitFor();
  await page.getByText(/worker 3 of pool 1 has started$/).waitFor();
  await page.getByText('worker 3', { exact: true }).waitFor();
  const ended = page.locator('.stats div', { hasText: 'Workers ended' }).locator('dd');
  await waitFor(async () => (await ended.textContent()) === '1');
});

test('a program that is stopped keeps its pools, and its workers are not reported as ended', {
  skip,
}, async (t) => {
  const page = await newPage();
  const { child } = await openProgram(t, page);
  child.kill('SIGSTOP');
  await page.getByText('It does not answer: this is as it was before.').waitFor();
  await page.getByText(/^worker \d+$/).waitFor();
  await page.getByText('main: no answer').waitFor();
  child.kill('SIGCONT');
  await page.getByText('main', { exact: true }).waitFor();
  await page.getByRole('heading', { name: 'Pool 1' }).waitFor();
  assert.equal(await page.getByText(/of pool 1 has (ended|started)/).count(), 0);
});

test('the chart of many loops shows the worst, and refers to the table for the others', {
  skip,
}, async (t) => {
  ownRuntime(t);
  const child = fork(many);
  t.after(() => child.kill('SIGKILL'));
  const { address } = await startDashboard(t, '--port', '0');
  const page = await newPage();
  await page.goto(address);
  await page.getByRole('link', { name: 'many-loops.js' }).click();
  const chart = page.locator('figure', { hasText: 'Lag of the event loops' });
  await chart.getByText('The worst 6: 2 more are in the table.').waitFor();
  await chart.locator('li', { hasText: new RegExp(`^ ?${child.pid} thread 7 `) }).waitFor();
  assert.equal(await chart.locator('li').count(), 6);
});

test('a process of a server that is killed is counted, and noted with its end', {
  skip,
}, async (t) => {
  ownRuntime(t);
  const child = fork(serving, ['true']);
  t.after(() => child.kill('SIGKILL'));
  const { address } = await startDashboard(t, '--port', '0');
  const page = await newPage();
  await page.goto(address);
  await page.getByRole('link', { name: /^(serving|answer)\.js$/ }).click();
  await page.getByRole('heading', { name: 'Server answer.js' }).waitFor();
  await page.getByRole('cell', { name: 'ready' }).waitFor();
  const [served] = childrenOf(child.pid ?? 0);
  process.kill(served?.pid ?? 0, 'SIGKILL');
  await page.getByText(/process 0 of answer\.js was replaced \(.*SIGKILL.*\)$/).waitFor();
  const lost = page.locator('.stats div', { hasText: 'Lost processes' }).locator('dd');
  await waitFor(async () => (await lost.textContent()) === '1');
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await exited;
});

test('a page loads itself anew when the version of its server changes', { skip }, async (t) => {
  const page = await newPage();
  await openProgram(t, page);
  const text = `event: view\ndata: ${JSON.stringify({ version: 'another', programs: [] })}\n\n`;
  await page.route('**/events*', (route) =>
    route.fulfill({ contentType: 'text/event-stream', body: text }),
  );
  const loaded = page.waitForEvent('load');
  await page.getByRole('link', { name: 'manycore' }).click();
  await loaded;
  await page.getByText('No program that uses manycore runs.').waitFor();
});

test('a wrong token shows one sentence', { skip }, async (t) => {
  ownRuntime(t);
  const { origin } = await startDashboard(t, '--port', '0');
  const page = await newPage();
  const response = await page.goto(`${origin}/?token=wrong`);
  assert.equal(response?.status(), 401);
  assert.match((await page.textContent('body')) ?? '', /^This dashboard needs its token: .*\.\n$/);
});

test('the page shows that it is stale, and recovers by itself when the server does', {
  skip,
}, async (t) => {
  const page = await newPage();
  const { dashboard } = await openProgram(t, page);
  await page.getByRole('status').getByText('live').waitFor();
  await end(dashboard);
  await page.getByText(/stale: nothing received for \d+ s, trying again/).waitFor();
  assert.equal(await page.getByRole('heading', { name: 'Pool 1' }).count(), 1);
  await startDashboard(t, '--port', String(dashboard.port));
  await page.getByRole('status').getByText('live').waitFor();
});

test('a server that hangs makes the page stale, too', { skip }, async (t) => {
  const page = await newPage();
  const { dashboard } = await openProgram(t, page);
  await page.getByRole('status').getByText('live').waitFor();
  dashboard.child.kill('SIGSTOP');
  await page.getByText(/stale: nothing received/).waitFor();
  dashboard.child.kill('SIGCONT');
  await page.getByRole('status').getByText('live').waitFor();
});

test('two tabs show two things at the same time', { skip }, async (t) => {
  const first = await newPage();
  await openProgram(t, first);
  const second = await first.context().newPage();
  await second.goto(first.url().replace(/#.*$/, ''));
  await second.getByRole('link', { name: 'busy.js' }).waitFor();
  await second.getByRole('heading', { name: 'Programs' }).waitFor();
  const before = await drawnPixels(first);
  await waitFor(async () => (await drawnPixels(first)) > before);
  await second.close();
  const after = await drawnPixels(first);
  await waitFor(async () => (await drawnPixels(first)) > after);
});

test('a phone scrolls up and down, and not sideways', { skip }, async (t) => {
  const page = await newPage({ viewport: phone });
  await openProgram(t, page);
  await page.getByRole('heading', { name: 'Longest tasks' }).waitFor();
  const width = () => page.evaluate('document.documentElement.scrollWidth');
  assert.equal(await width(), phone.width);
  await page.getByRole('link', { name: 'manycore' }).click();
  await page.getByRole('link', { name: 'busy.js' }).waitFor();
  assert.equal(await width(), phone.width);
});

test('the keyboard reaches everything, in the order in which it is seen', { skip }, async (t) => {
  const page = await newPage();
  ownRuntime(t);
  startApp(t);
  const { address } = await startDashboard(t, '--port', '0');
  await page.goto(address);
  await page.getByRole('link', { name: 'busy.js' }).waitFor();
  const focused = (): Promise<string> =>
    page.evaluate(`(() => {
      const { activeElement: at } = document;
      return at.getAttribute('aria-label') ?? at.textContent;
    })()`);
  const order: string[] = [];
  for (let step = 0; step < 3; step += 1) {
    await page.keyboard.press('Tab');
    order.push(await focused());
  }
  assert.deepEqual(order, ['manycore', 'Programs', 'busy.js']);
  const outline = await page.evaluate('getComputedStyle(document.activeElement).outlineStyle');
  assert.equal(outline, 'solid');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Longest tasks' }).waitFor();
  const inProgram: string[] = [];
  for (let step = 0; step < 3; step += 1) {
    await page.keyboard.press('Tab');
    inProgram.push(await focused());
  }
  assert.deepEqual(inProgram, ['Workers as a table', 'Longest tasks', 'Event loops']);
  await page.locator('summary').focus();
  await page.keyboard.press('Enter');
  await page.getByRole('region', { name: 'Workers of pool 1' }).getByText('ready').waitFor();
});

interface Violation {
  readonly id: string;
  readonly impact?: string;
  readonly nodes: readonly { readonly html: string }[];
}

for (const colorScheme of ['light', 'dark'] as const) {
  test(`axe finds nothing wrong in ${colorScheme} colours`, { skip }, async (t) => {
    const page = await newPage({ colorScheme, bypassCSP: true });
    await openProgram(t, page);
    await page.getByRole('heading', { name: 'Longest tasks' }).waitFor();
    const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
    await page.evaluate(readFileSync(axe, 'utf8'));
    const violations: readonly Violation[] = await page.evaluate(
      'axe.run(document).then(({ violations }) => violations)',
    );
    assert.deepEqual(
      violations.map(({ id, impact, nodes }) => ({ id, impact, html: nodes[0]?.html })),
      [],
    );
  });
}
