// The status page of a server in a browser: wide tables scroll by themselves, and the page fits.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ServerStatus } from '../../src/serve/control/control.js';
import { loopsIn } from '../../src/serve/control/status.js';
import { statusPage } from '../../src/serve/control/status-page.js';
import { newPage, noBrowser } from './browser.js';

const longName = 'customer-portal-with-a-long-name'.repeat(3);
const states = ['ready', 'draining', 'starting', 'ready'];
const loops = loopsIn(
  Array.from({ length: 12 }, (_, at) => ({
    ...{ process: at >> 2, pid: 1234567, loop: at % 4, state: states[at % 4], generation: 12 },
    ...{ ageMs: 1e7 * at, rssBytes: 3e8, connections: 12345678, requests: 123456789 },
    ...{ bytesWritten: 1e12 * at, takenAway: 12345, takenOver: 54321 },
    ...{ blockedMs: at % 4 === 3 ? 14_000 : 0, lastExit: 'the signal SIGKILL, '.repeat(5) },
  })),
);
const status: ServerStatus = {
  pid: 1234567,
  name: longName,
  app: `/srv/${longName}_${longName.replaceAll('-', '')}/server.js`,
  addresses: [
    { address: '2001:db8:85a3::8a2e:370:7334', port: 34567, family: 'IPv6' },
    `/run/${longName.replaceAll('-', '')}/server.sock`,
  ],
  startedAtMs: 0,
  lostProcesses: 3,
  loops,
};

for (const width of [1100, 390]) {
  test(`at ${width} px nothing but the table is wider, and the state of each loop is in view`, {
    skip: noBrowser,
  }, async (t) => {
    const page = await newPage(t, { viewport: { width, height: 800 } });
    await page.setContent(statusPage(status));
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), width);
    for (const text of ['blocked 14 s', 'draining', 'starting']) {
      const cells = await page.getByRole('cell', { name: text }).all();
      assert.equal(cells.length, 3);
      for (const cell of cells) {
        const box = await cell.boundingBox();
        assert.ok(box !== null && box.x >= 0 && box.x + box.width <= width, text);
      }
    }
  });
}
