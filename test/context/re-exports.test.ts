// Objects that are the export of several CommonJS modules: the host loads the one that has them whole.

import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Peer } from './harness.js';

const peer = new Peer();
after(() => peer.close());

test('an object that another module has added to is imported from that one', async () => {
  const whole = createRequire(import.meta.url)('../../../test/context/fixtures/whole.cjs');
  const held = { whole };
  assert.deepEqual(await peer.run(() => held.whole.names), ['core', 'added']);
});

test('a class of an inner module is set up by the package that exports it', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'manycore-package-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const inside = join(folder, 'node_modules/some-package');
  await mkdir(inside, { recursive: true });
  await writeFile(
    join(inside, 'type.js'),
    'let root; class Type { root() { return root; } }\n' +
      'Type.setUp = (given) => { root = given; };\nmodule.exports = Type;\n',
  );
  await writeFile(
    join(inside, 'index.js'),
    "exports.Type = require('./type.js');\nexports.Type.setUp('the root');\n",
  );
  const { Type } = createRequire(import.meta.url)(join(inside, 'index.js'));
  const made = new Type();
  assert.equal(await peer.run(() => made.root()), 'the root');
});
