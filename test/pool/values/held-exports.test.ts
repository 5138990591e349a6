// A symbol, a function or a frozen object that a module exports inside of an object or as part of a namespace is
// the one of that module in the worker, and of the caller as a result. Each way to import it is a program of its
// own, as what one function of a program imports is known for all.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { programFolder, runNode } from '../programs.js';

const values = `const RED = Symbol('red'), BLUE = Object.freeze({ blue: 1 });
let calls = 1;
calls = 2;
const count = () => calls;`;

const files = {
  'colors.mjs': `${values}\nexport { RED, BLUE, count };`,
  'star.mjs': "export * as Held from './colors.mjs';",
  'namespace.mjs': "import * as colors from './colors.mjs'; export { colors as Held };",
  'of-another.mjs':
    "import * as colors from './colors.mjs'; export default Object.freeze({ ...colors });",
  'default.mjs': `${values}\nexport default { RED, BLUE, count };`,
  'frozen.mjs': `${values}\nexport default Object.freeze({ RED, BLUE, count });`,
  'deep.mjs': `${values}\nexport const deep = { Held: { RED, BLUE, count } };`,
  'changed.mjs': `${values}\nexport const Held = { RED, BLUE, count };`,
};

/** Statements that give \`Held\`, and how many of its three values are the module's. */
const ways: readonly (readonly [statement: string, known: number])[] = [
  ["import { Held } from './star.mjs';", 3],
  ["import { Held } from './namespace.mjs';", 3],
  ["import * as all from './star.mjs'; const { Held } = all;", 3],
  ["import Held from './of-another.mjs';", 3],
  ["import Held from './frozen.mjs';", 3],
  ["import Held from './default.mjs';", 2],
  ["import { deep } from './deep.mjs'; const { Held } = deep;", 2],
];

const check = `
const pool = new Pool({ size: 1, worker: process.argv[2] });
const names = (value) => Object.keys(HELD).filter((key) => HELD[key] === value);
for (const [name, value] of Object.entries(HELD)) {
  const held = { value };
  const found = [
    await pool.run((given) => names(given), value),
    await pool.run((given) => names(given.value), held),
    await pool.run(() => names(value)),
    names(await pool.run((key) => HELD[key], name)),
  ];
  console.log(name, JSON.stringify(found));
}
await pool.close();
`;

test('an export inside of an object or a namespace is that of its module', async (t) => {
  const head = "import { Pool } from 'manycore';";
  const programs = ways.map(([statement], at): [string, string] => {
    const held = statement.includes('deep')
      ? 'deep.Held'
      : statement.includes('all')
        ? 'all.Held'
        : 'Held';
    return [`main-${at}.mjs`, `${head}\n${statement}${check.replaceAll('HELD', held)}`];
  });
  const folder = programFolder(t, { ...files, ...Object.fromEntries(programs) });
  const waiting = ways.entries();
  const runSome = async (): Promise<void> => {
    for (const [at, [statement, known]] of waiting) {
      const worker = at % 2 === 0 ? 'process' : 'thread';
      const { lines, stderr } = await runNode(folder, [`main-${at}.mjs`, worker]);
      const expected = ['RED', 'BLUE', 'count'].map(
        (name) => `${name} ${JSON.stringify(Array.from({ length: 4 }, () => [name]))}`,
      );
      const isAlike = (line: string) => expected.includes(line);
      assert.equal(stderr, '', statement);
      assert.equal(lines.filter(isAlike).length, known, `${statement}\n${lines.join('\n')}`);
      assert.equal(lines.length, 3, statement);
    }
  };
  await Promise.all([runSome(), runSome()]);
});

test('a property that the program has given another symbol is a symbol of the call', async (t) => {
  const folder = programFolder(t, {
    ...files,
    'main.mjs': `import { Pool } from 'manycore';
import { Held } from './changed.mjs';
const pool = new Pool({ size: 1 });
Held.RED = Symbol('other');
Held.MORE = Symbol('more');
const { RED, MORE } = Held;
const found = await pool.run((given, same, more) => [given === same, given.description, more.description, Held.RED.description], RED, RED, MORE);
console.log(JSON.stringify(found), (await pool.run((given) => given, MORE)) === MORE);
await pool.close();`,
  });
  const { lines, stderr } = await runNode(folder, ['main.mjs']);
  assert.deepEqual([...lines, stderr], ['[true,"other","more","red"] true', '']);
});
