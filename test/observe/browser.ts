// A headless Chromium, where there is one: `chromium` of the system's packages, or what
// MANYCORE_TEST_CHROMIUM names.

import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { after, type TestContext } from 'node:test';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

function findBrowser(): string | undefined {
  const named = process.env['MANYCORE_TEST_CHROMIUM'];
  if (named !== undefined) return named;
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return folders.flatMap((folder) => names.map((name) => join(folder, name))).find(existsSync);
}

const path = findBrowser();

/** Reason why there is no browser for tests here; `false` if there is one. */
export const noBrowser = path === undefined && 'there is no chromium (apt-get install chromium)';

let started: Promise<Browser> | undefined;
after(async () => {
  await (await started)?.close();
});

/** A page without cookies, which ends with the test: one that stays draws on. The whole file has one browser. */
export async function newPage(t: TestContext, options: BrowserContextOptions = {}): Promise<Page> {
  started ??= chromium.launch({
    ...(path !== undefined && { executablePath: path }),
    args: ['--no-sandbox'], // nothing foreign is loaded, and root has none
  });
  const context = await (await started).newContext(options);
  t.after(() => context.close());
  return await context.newPage();
}
