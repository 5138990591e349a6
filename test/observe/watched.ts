// Programs for tests of the dashboard's page, and what is seen of them there.

import { type ChildProcess, fork } from 'node:child_process';
import type { TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { type RunningDashboard, startDashboard } from './dashboard-process.js';
import { ownRuntime } from './runtime.js';

const busy = new URL('./apps/busy.js', import.meta.url);

export interface Watched {
  readonly child: ChildProcess;
  readonly dashboard: RunningDashboard;
}

/** Starts the program at `app`, by default one that is always busy, and a dashboard; both end with the test. */
export async function startWatched(
  t: TestContext,
  app = busy,
  args: readonly string[] = [],
): Promise<Watched> {
  ownRuntime(t);
  const child = fork(app, args);
  t.after(() => child.kill('SIGKILL'));
  return { child, dashboard: await startDashboard(t, '--port', '0') };
}

/** Opens the busy program on the page. */
export async function openBusy(page: Page, { dashboard }: Watched): Promise<void> {
  await page.goto(dashboard.address);
  await page.getByRole('link', { name: 'busy.js' }).click();
  await page.getByRole('heading', { name: 'Pool 1' }).waitFor();
}

/** Number of drawn pixels of the time line. */
export async function drawnPixels(page: Page): Promise<number> {
  return await page.evaluate(`(() => {
    const canvas = document.querySelector('.lanes canvas');
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let at = 3; at < data.length; at += 4) if (data[at] > 0) count += 1;
    return count;
  })()`);
}
