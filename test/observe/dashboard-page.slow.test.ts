// The dashboard's page as people see it: what changes while it is open, and how it is used. One program is there
// for all tests that only look at it.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { childrenOf, killOne, waitFor } from '../support/index.js';
import { newPage, noBrowser } from './browser.js';
import { end, startDashboard } from './dashboard-process.js';
import { drawnPixels, openBusy, startWatched } from './watched.js';

const skip = noBrowser;
const sturdy = new URL('./apps/two-workers.js', import.meta.url);
const resting = new URL('./apps/resting.js', import.meta.url);
const many = new URL('./apps/many-loops.js', import.meta.url);
const serving = new URL('./apps/serving.js', import.meta.url);
const phone = { width: 360, height: 740 };

interface Violation {
  readonly id: string;
  readonly impact?: string;
  readonly nodes: readonly { readonly html: string }[];
}

test('a pool that has no worker yet, or none any more, is drawn when it has one', {
  skip,
}, async (t) => {
  const { child, dashboard } = await startWatched(t, resting);
  const page = await newPage(t);
  await page.goto(dashboard.address);
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
  const { child, dashboard } = await startWatched(t, sturdy);
  const page = await newPage(t);
  await page.goto(dashboard.address);
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
  const page = await newPage(t);
  const watched = await startWatched(t);
  await openBusy(page, watched);
  const { child } = watched;
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
  const { child, dashboard } = await startWatched(t, many);
  const page = await newPage(t);
  await page.goto(dashboard.address);
  await page.getByRole('link', { name: 'many-loops.js' }).click();
  const chart = page.locator('figure', { hasText: 'Lag of the event loops' });
  await chart.getByText('The worst 6: 2 more are in the table.').waitFor();
  await chart.locator('li', { hasText: new RegExp(`^ ?${child.pid} thread 7 `) }).waitFor();
  assert.equal(await chart.locator('li').count(), 6);
});

test('a process of a server that is killed is counted, and noted with its end', {
  skip,
}, async (t) => {
  const { child, dashboard } = await startWatched(t, serving, ['true']);
  const page = await newPage(t);
  await page.goto(dashboard.address);
  await page.getByRole('link', { name: /^(serving|answer)\.js$/ }).click();
  await page.getByRole('heading', { name: 'Server answer.js' }).waitFor();
  await page.getByRole('cell', { name: 'ready' }).waitFor();
  const [served] = childrenOf(child.pid ?? 0);
  killOne(served?.pid, 'SIGKILL');
  await page.getByText(/process 0 of answer\.js was replaced \(.*SIGKILL.*\)$/).waitFor();
  const lost = page.locator('.stats div', { hasText: 'Lost processes' }).locator('dd');
  await waitFor(async () => (await lost.textContent()) === '1');
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await exited;
});

test('a page loads itself anew when the version of its server changes', { skip }, async (t) => {
  const page = await newPage(t);
  await openBusy(page, await startWatched(t));
  const text = `event: view\ndata: ${JSON.stringify({ version: 'another', programs: [] })}\n\n`;
  await page.route('**/events*', (route) =>
    route.fulfill({ contentType: 'text/event-stream', body: text }),
  );
  const loaded = page.waitForEvent('load');
  await page.getByRole('link', { name: 'manycore' }).click();
  await loaded;
  await page.getByText('No program that uses manycore runs.').waitFor();
});

test('the page shows that it is stale, and recovers by itself when the server does', {
  skip,
}, async (t) => {
  const page = await newPage(t);
  const watched = await startWatched(t);
  await openBusy(page, watched);
  const { dashboard } = watched;
  await page.getByRole('status').getByText('live').waitFor();
  await end(dashboard);
  await page.getByText(/stale: nothing received for \d+ s, trying again/).waitFor();
  assert.equal(await page.getByRole('heading', { name: 'Pool 1' }).count(), 1);
  await startDashboard(t, '--port', String(dashboard.port));
  await page.getByRole('status').getByText('live').waitFor();
});

test('a server that hangs makes the page stale, too', { skip }, async (t) => {
  const page = await newPage(t);
  const watched = await startWatched(t);
  await openBusy(page, watched);
  const { dashboard } = watched;
  await page.getByRole('status').getByText('live').waitFor();
  dashboard.child.kill('SIGSTOP');
  await page.getByText(/stale: nothing received/).waitFor();
  dashboard.child.kill('SIGCONT');
  await page.getByRole('status').getByText('live').waitFor();
});

test('a program that only runs', { skip }, async (watching) => {
  const watched = await startWatched(watching);

  await watching.test('two tabs show two things at the same time', async (t) => {
    const first = await newPage(t);
    await openBusy(first, watched);
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

  await watching.test('a phone scrolls up and down, and not sideways', async (t) => {
    const page = await newPage(t, { viewport: phone });
    await openBusy(page, watched);
    await page.getByRole('heading', { name: 'Longest tasks' }).waitFor();
    const width = () => page.evaluate('document.documentElement.scrollWidth');
    assert.equal(await width(), phone.width);
    await page.getByRole('link', { name: 'manycore' }).click();
    await page.getByRole('link', { name: 'busy.js' }).waitFor();
    assert.equal(await width(), phone.width);
  });

  await watching.test(
    'the keyboard reaches everything, in the order in which it is seen',
    async (t) => {
      const page = await newPage(t);
      await page.goto(watched.dashboard.address);
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
    },
  );

  for (const colorScheme of ['light', 'dark'] as const) {
    await watching.test(`axe finds nothing wrong in ${colorScheme} colours`, async (t) => {
      const page = await newPage(t, { colorScheme, bypassCSP: true });
      await openBusy(page, watched);
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
});
