// Durable tasks and the versions of their code: a node with other files leaves a task to one with the right ones.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { announcements } from '../../../src/lib/index.js';
import { task } from '../../../src/public.js';
import { waitFor } from '../../support/index.js';
import { joinBus, skip } from '../server.js';
import { notesFile, openPool, secret, startDurable } from './durables.js';

test('a durable task runs in the version of its caller, or waits', { skip }, async (t) => {
  const server = await startDurable(t);
  const folder = new URL('./', pathToFileURL(notesFile(t)));
  const put = (name: string, text: string): URL => {
    const url = new URL(name, folder);
    writeFileSync(url, text);
    return url;
  };
  const inner = (version: number) => put('inner.mjs', `export const inner = ${version};`);
  inner(1);
  const text = `import { inner } from './inner.mjs'; export const version = () => inner;`;
  const version = task<() => number>(put('outer.mjs', text), 'version');
  const pool = (await openPool(t, server)).with({ durable: true });
  const refusals: string[] = [];
  const note = (message: unknown): void => void refusals.push(Object(message).why);
  announcements.clusterRefused.subscribe(note);
  t.after(() => announcements.clusterRefused.unsubscribe(note));
  const first = pool.run(version);
  const { cluster } = await joinBus(t, server, { secret });
  const node = await cluster.lendWorkers(1, { durable: true });
  t.after(() => node.destroy());
  assert.equal(await first, 1);
  // The files of the node change after the call.
  inner(2);
  const second = pool.run(version);
  inner(3);
  const [why = ''] = await waitFor(() => (refusals.length > 0 ? refusals : undefined));
  assert.match(
    why,
    /^the durable task version needs file:.*outer\.mjs in version \w{12}, and here it is \w{12}:/,
  );
  inner(2);
  assert.equal(await second, 2, 'by a worker that has not loaded version 1');
});
