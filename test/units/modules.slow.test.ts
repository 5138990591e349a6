// Modules of units: each form in which a file may export one, as ES module and as CommonJS, with its other methods.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startLoops } from './loops.js';

let folder = '';
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'manycore-modules-'));
  writeFileSync(join(folder, 'package.json'), '{ "type": "commonjs" }');
});
after(() => rmSync(folder, { recursive: true }));

const consumer = `bus.consumer('here', (message) => message.reply('here'));`;
const others = ['stop() {}', 'health() {}', 'save() {}', 'restore() {}'];
const named = (name: string) => `${name.slice(0, name.indexOf('('))}: function ${name}`;

/** Texts by name; CommonJS in `.cjs` and in `.js` of a package without a type. */
const commonJs: Readonly<Record<string, string>> = {
  'a function': `module.exports = ({ bus }) => { ${consumer} };`,
  'a class': `module.exports = class { start({ bus }) { ${consumer} } };`,
  'an object': `module.exports = { start({ bus }) { ${consumer} } };`,
  start: `exports.start = ({ bus }) => { ${consumer} };`,
  'compiled from an ES module': `exports.__esModule = true; exports.default = ({ bus }) => { ${consumer} };`,
  'a function that is its own default': `const unit = ({ bus }) => { ${consumer} }; module.exports = unit; unit.default = unit;`,
  ...Object.fromEntries(
    others.map((other) => [
      `start and ${other}`,
      `module.exports = { start({ bus }) { ${consumer} }, ${named(other)} };`,
    ]),
  ),
};
const esModules: Readonly<Record<string, string>> = {
  'a function': `export default ({ bus }) => { ${consumer} };`,
  'a class': `export default class { start({ bus }) { ${consumer} } };`,
  'an object': `export default { start({ bus }) { ${consumer} } };`,
  start: `export const start = ({ bus }) => { ${consumer} };`,
  ...Object.fromEntries(
    others.map((other) => [
      `start and ${other}`,
      `export function start({ bus }) { ${consumer} } export function ${other}`,
    ]),
  ),
};

const forms = [
  ...Object.entries(commonJs).flatMap(([name, text]) => [
    { name: `${name} in .cjs`, file: 'cjs', text },
    { name: `${name} in .js of CommonJS`, file: 'js', text },
  ]),
  ...Object.entries(esModules).map(([name, text]) => ({
    name: `${name} in .mjs`,
    file: 'mjs',
    text,
  })),
];

test('every form of a module is deployed, and runs', async (t) => {
  const loops = startLoops(t, { processes: 1 });
  for (const [at, { name, file, text }] of forms.entries()) {
    const path = join(folder, `unit${at}.${file}`);
    writeFileSync(path, text);
    const deployment = await loops.deploy(path).catch((error: unknown) => {
      assert.fail(`${name}: ${error}`);
    });
    assert.equal((await loops.bus.request('here', 0)).body, 'here', name);
    await deployment.undeploy();
  }
});

for (const [file, text] of Object.entries({
  cjs: `let count = 0;
    exports.start = ({ bus }) => { bus.consumer('count', (message) => message.reply(++count)); };
    exports.save = () => count;
    exports.restore = (state) => { count = state; };`,
  mjs: `let count = 0;
    export function start({ bus }) { bus.consumer('count', (message) => message.reply(++count)); }
    export const save = () => count;
    export const restore = (state) => { count = state; };`,
})) {
  test(`a module .${file} with start, save and restore keeps its state where it moves`, async (t) => {
    const loops = startLoops(t);
    const path = join(folder, `counter.${file}`);
    writeFileSync(path, text);
    const deployment = await loops.deploy(path);
    for (const expected of [1, 2]) {
      assert.equal((await loops.bus.request('count', 0)).body, expected);
    }
    const [{ loop: from = 1 } = {}] = await deployment.status();
    await deployment.move(0, from === 1 ? 2 : 1);
    assert.equal((await loops.bus.request('count', 0)).body, 3);
  });
}
