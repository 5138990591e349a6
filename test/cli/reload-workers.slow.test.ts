// The workers that the loops of a server share, after a reload with other variables.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { bodyOf } from '../serve/client.js';
import { folder, skip } from '../serve/served.js';
import { waitFor } from '../support/index.js';
import { deadlineMs, startWith } from './serving.js';

const library = new URL('../../src/public.js', import.meta.url).href;
const text = `
import { run } from '${library}';
export default async (request, response) => {
  const inWorker = await run(() => ({ one: process.env.ONE, pid: process.pid }));
  response.end(JSON.stringify({ ...inWorker, isOther: inWorker.pid !== process.pid }));
};
`;

test('tasks of the new processes run with the new variables', { skip }, async (t) => {
  const root = folder(t);
  const config = join(root, 'config.json');
  const content = { processes: 1, loops: 1, port: 0, app: 'app.mjs' };
  const write = (env: object): void => writeFileSync(config, JSON.stringify({ ...content, env }));
  writeFileSync(join(root, 'app.mjs'), text);
  write({ ONE: 'old' });
  const { child, lines, port } = await startWith(t, ['--config', config]);
  const before = JSON.parse(await bodyOf(port));
  assert.deepEqual([before.one, before.isOther], ['old', true]);
  write({ ONE: 'new' });
  child.kill('SIGHUP');
  await waitFor(() => lines.includes('reloaded'), deadlineMs);
  // A worker that was asked for during the reload still had the old ones.
  const after = await waitFor(async () => {
    const found = JSON.parse(await bodyOf(port));
    return found.one === 'new' ? found : undefined;
  }, deadlineMs);
  assert.notEqual(after.pid, before.pid);
});
