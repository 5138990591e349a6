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

test('at 1100 px all columns of an ordinary server are in view, and the last exit wraps', {
  skip: noBrowser,
}, async (t) => {
  const page = await newPage(t, { viewport: { width: 1100, height: 800 } });
  const ordinary = loopsIn(
    ['', 'exit code 1', 'the signal SIGKILL, after it was blocked for 15 s'].map(
      (lastExit, at) => ({
        ...{ process: at, pid: 30_178 + at, loop: 0, state: 'ready', generation: 1, ageMs: 2e5 },
        ...{ rssBytes: 94e6, connections: 12_345, requests: 1_234_567, bytesWritten: 37e6 },
        ...{ blockedMs: at === 2 ? 14_000 : 0, lastExit },
      }),
    ),
  );
  await page.setContent(statusPage({ ...status, loops: ordinary }));
  const box = await page.getByRole('cell', { name: 'SIGKILL' }).boundingBox();
  assert.ok(box !== null && box.x + box.width <= 1100, JSON.stringify(box));
  const heads = page.getByRole('columnheader');
  for (const head of await heads.all()) {
    const size = await head.boundingBox();
    assert.ok(
      size !== null && size.x + size.width <= 1100 && size.width > 20,
      JSON.stringify(size),
    );
  }
});

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
