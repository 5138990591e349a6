// Objects that are the export of several CommonJS modules: the worker loads the one that has them complete.

import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Peer } from '../harness.js';

const peer = new Peer();
after(() => peer.close());

test('an object that another module has added to is imported from that one', async () => {
  const whole = createRequire(import.meta.url)('../../../../test/context/fixtures/whole.cjs');
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

/** Output of esbuild for `export` in CommonJS. */
const esbuildHelpers = `
var __defProp = Object.defineProperty, __hasOwnProp = Object.prototype.hasOwnProperty;
var __export = (target, all) => {
  for (var name in all) __defProp(target, name, { get: all[name], enumerable: true });
};
var __copyProps = (to, from, except) => {
  for (let key of Object.getOwnPropertyNames(from))
    if (!__hasOwnProp.call(to, key) && key !== except)
      __defProp(to, key, { get: () => from[key], enumerable: true });
  return to;
};
var __reExport = (target, mod, second) => (__copyProps(target, mod, 'default'), second && __copyProps(second, mod, 'default'));
var __toCommonJS = (mod) => __copyProps(__defProp({}, '__esModule', { value: true }), mod);
`;

test('a class that esbuild exports as CommonJS is one class here and in the worker', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'manycore-esbuild-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await writeFile(
    join(folder, 'inner.js'),
    `${esbuildHelpers}var inner_exports = {}; __export(inner_exports, { Inner: () => Inner });
     module.exports = __toCommonJS(inner_exports); class Inner {}`,
  );
  await writeFile(
    join(folder, 'own.js'),
    `${esbuildHelpers}var own_exports = {}; __export(own_exports, { Own: () => Own });
     module.exports = __toCommonJS(own_exports); __reExport(own_exports, require('./inner.js'), module.exports);
     let asked = 0; Object.defineProperty(module.exports, 'asked', { enumerable: true, get: () => { asked += 1; return asked; } });
     class Own {}`,
  );
  const own_1 = createRequire(import.meta.url)(join(folder, 'own.js'));
  const [own, inner] = await peer.run(() => [new own_1.Own(), new own_1.Inner()]);
  assert.ok(own instanceof own_1.Own);
  assert.ok(inner instanceof own_1.Inner);
  assert.equal(await peer.run((each) => each instanceof own_1.Own, new own_1.Own()), true);
  assert.equal(own_1.asked, 1);
});
