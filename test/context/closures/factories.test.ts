// Modules with factories of classes: a class that a call of one made is no class of its module, even with the
// same name. Random modules have one name for exports, variables and classes of factories at once. Each class
// gives the same in the worker as here.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { hasCode } from '../../../src/errors.js';
import { type Random, random, seeded } from '../../support/index.js';
import { Peer } from '../harness.js';

const folder = mkdtempSync(join(tmpdir(), 'manycore-factories-'));
const peer = new Peer();
after(() => {
  peer.close();
  rmSync(folder, { recursive: true, force: true });
});

type Class = new () => { show(): string; part?(): { show(): string } };

interface Module {
  make(n: number): Class;
  take(): readonly Class[];
  isOne(value: object): boolean;
  readonly Money?: unknown;
}

const names = ['Money', 'Coin', 'Part'];

/** The text of a module that exports \`make\`, \`take\` and \`isOne\`, and perhaps a \`Money\`. */
function moduleText(random: Random, isCommonJs: boolean): string {
  const [made, inner, other] = [random.pick(names), random.pick(names), random.pick(names)];
  const heritage = random.pick(['', '', ' extends Object', ' extends Root']);
  const base = heritage === '' ? '' : ' super();';
  const body = `{ static digits = n; constructor() {${base} this.n = n; }
    show() { return '${made} ' + ${made}.digits + this.n; }
    ${inner === made ? '' : `part() { return new ${inner}(); }`} }`;
  const part = inner === made ? '' : `class ${inner} { show() { return '${inner} of ' + n; } }`;
  const text = random.pick([
    `${part} class ${made}${heritage} ${body} return ${made};`,
    `${part} return class ${made}${heritage} ${body};`,
    `${part} const ${made} = class${heritage} ${body}; return ${made};`,
    `${part} var ${made} = (() => class ${made}${heritage} ${body})(); return ${made};`,
  ]);
  const factory = random.pick([
    `function make(n) { ${text} }`,
    `const make = (n) => { ${text} };`,
    `const make = (() => { const ${other}s = 1; return (n) => { ${text} }; })();`,
  ]);
  const exported = random.pick([
    '',
    "const Money = 'a name';",
    'const Money = make(2);',
    'let Money = make(2); const renew = () => { Money = make(3); };',
    'class Money { show() { return "the module\'s"; } }',
  ]);
  const hidden = random.pick([
    '',
    'class Coin { show() { return "hidden"; } }',
    'const Part = make(8);',
  ]);
  const all = ['Root', ...(exported === '' ? [] : ['Money'])];
  const hiddenName = /(?:class|const) (\w+)/.exec(hidden)?.[1];
  const kept = hiddenName === undefined ? all : [...all, hiddenName];
  const list = kept.filter((name) => name !== 'Money' || !/'a name'|let /.test(exported));
  const out = ['make', 'take', 'isOne', ...(exported === '' ? [] : ['Money'])];
  const last = isCommonJs
    ? `Object.assign(exports, { ${out.join()} });`
    : `export { ${out.join()} };`;
  return `class Root { show() { return 'root'; } }
${factory}
${exported}
${hidden}
const take = () => [${list.join()}];
const isOne = (value) => [${list.join()}].some((each) => value instanceof each);
${last}`;
}

/** Compares classes and their instances, here and there. */
async function compare(module: Module, isOwn: boolean): Promise<void> {
  const { make, take, isOne } = module;
  const classes = isOwn ? take() : [make(0), make(5), ...take()];
  const instances = classes.map((each) => new each());
  const probe = () => [
    classes.map((each) => [each.name, new each().show(), new each().part?.().show()]),
    instances.map((each) => [each.show(), each.part?.().show()]),
    classes.map((each) => classes.indexOf(each)),
    instances.map((each, at) => [each.constructor === classes[at], isOne(each)]),
  ];
  const home = JSON.stringify(probe());
  assert.equal(JSON.stringify(await peer.run(probe)), home);
}

test('a class of a factory is no class of its module', async (t) => {
  const { seed } = random(t);
  const runs = Number(process.env['MANYCORE_RUNS'] ?? 40);
  let refused = 0;
  for (let at = 0; at < runs; at += 1) {
    const isCommonJs = (seed + at) % 2 === 1;
    const text = moduleText(seeded(seed + at), isCommonJs);
    const file = join(folder, `m-${seed + at}.${isCommonJs ? 'cjs' : 'mjs'}`);
    writeFileSync(file, text);
    let module: Module;
    try {
      const namespace = await import(pathToFileURL(file).href);
      module = isCommonJs ? namespace.default : namespace;
    } catch {
      continue; // a variable before its initialisation
    }
    for (const isOwn of [false, true]) {
      try {
        await compare(module, isOwn);
      } catch (cause) {
        if (hasCode(cause, 'TRANSFER_SHARED_VARIABLE')) refused += 1;
        else
          throw new Error(`MANYCORE_SEED=${seed + at} MANYCORE_RUNS=1\n${text}\n${cause}`, {
            cause,
          });
      }
    }
  }
  assert.ok(refused < runs, 'most classes travel');
});
