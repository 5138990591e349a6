// A headless Chromium for the bench: `chromium` of the system's packages, or what MANYCORE_TEST_CHROMIUM names.
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { chromium } from 'playwright-core';

const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/** A page in a browser of its own. */
export async function newPage() {
  const folders = (process.env.PATH ?? '').split(delimiter);
  const found = folders.flatMap((folder) => names.map((name) => join(folder, name)));
  const executablePath = process.env.MANYCORE_TEST_CHROMIUM ?? found.find(existsSync);
  if (executablePath === undefined) throw new Error('no chromium: apt-get install chromium');
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  return await browser.newPage({ viewport: { width: 1280, height: 1200 } });
}
