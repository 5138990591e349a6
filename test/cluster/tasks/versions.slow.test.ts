// Durable tasks and the versions of their code: a node with other files leaves a task to one with the right ones.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { Signer } from '../../../src/cluster/bus/signature.js';
import { protocolVersion, signatureBytes } from '../../../src/cluster/protocol.js';
import { taskSubjects } from '../../../src/cluster/tasks/jetstream.js';
import { announcements } from '../../../src/lib/index.js';
import { task } from '../../../src/public.js';
import { waitFor } from '../../support/index.js';
import { joinBus, refusals, skip } from '../server.js';
import {
  notesFile,
  openCounts,
  openPool,
  openStore,
  secret,
  startDurable,
  startNode,
} from './durables.js';

/** Writes a module and its import; returns the URL of the one, and a function that edits the other. */
function program(t: TestContext) {
  const folder = new URL('./', pathToFileURL(notesFile(t)));
  const outer = new URL('outer.mjs', folder);
  writeFileSync(outer, `import { inner } from './inner.mjs'; export const version = () => inner;`);
  const edit = (version: number): void =>
    writeFileSync(new URL('inner.mjs', folder), `export const inner = ${version};`);
  edit(1);
  return { outer, edit };
}

test('a durable task runs in the version of its caller, or waits', { skip }, async (t) => {
  const server = await startDurable(t);
  const { outer, edit } = program(t);
  const version = task<() => number>(outer, 'version');
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
  edit(2);
  const second = pool.run(version);
  edit(3);
  const [why = ''] = await waitFor(() => (refusals.length > 0 ? refusals : undefined));
  assert.match(
    why,
    /^the durable task version needs file:.*outer\.mjs in version \w{12}, and here it is \w{12}:/,
  );
  edit(2);
  assert.equal(await second, 2, 'by a worker that has not loaded version 1');
  await node.destroy();
});

test('a durable task of another manycore waits for a node that can read it', {
  skip,
}, async (t) => {
  const server = await startDurable(t);
  const why = refusals(t);
  const { cluster } = await joinBus(t, server, { secret });
  const node = await cluster.lendWorkers(1, { durable: true });
  t.after(() => node.destroy());
  const { task: subject, result } = taskSubjects('manycore', 'other');
  const order = { protocol: protocolVersion + 1, time: Date.now(), unknown: 'to this version' };
  const head = Buffer.from(JSON.stringify(order));
  const frame = Buffer.alloc(4 + head.byteLength + signatureBytes);
  frame.writeUInt32LE(head.byteLength);
  head.copy(frame, 4);
  new Signer(secret, 'manycore').sign(frame, subject);
  const store = await openStore(t, server);
  await store.putTask(subject, frame);
  await waitFor(() => why.length > 0);
  const versions = `version ${protocolVersion + 1} of the protocol, and this node ${protocolVersion}:`;
  assert.match(
    why[0] ?? '',
    new RegExp(`^a durable task has ${versions} .* give all one version$`),
  );
  assert.equal(await store.result(result), undefined);
  assert.equal(await (await openCounts(t, server))(), 1);
});

test('a worker of another version refuses a function before it runs', { skip }, async (t) => {
  const server = await startDurable(t);
  const { outer, edit } = program(t);
  const { version }: { version: () => number } = await import(outer.href);
  await startNode(t, server, { workers: 3 });
  const before = await openPool(t, server);
  assert.equal(await before.run(() => version()), 1);
  edit(2);
  const after = await openPool(t, server);
  await assert.rejects(
    after.run(() => version()),
    {
      code: 'TRANSFER_VERSION_DIFFERS',
      message: /outer\.mjs.* has version \w{12} .*, and here it is \w{12}: put/,
    },
  );
  assert.equal(await before.run(() => version()), 1, 'its worker has loaded it before');
  edit(1);
  const restored = await openPool(t, server);
  assert.equal(await restored.run(() => version()), 1);
});
