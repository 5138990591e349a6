// Random graphs of modules, as files: ES modules, CommonJS by hand and by a compiler, packages with one
// build or two, cycles and re-exports, also through the program, and modules that start tasks while they load,
// behind a program that calls with what it imports from them. The program prints a line for each call that is
// neither as at home nor refused with a path, and each file that must be loaded once says that it is.
// Not here: running them (module-graphs.test.ts).

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: templates of the programs, not of this file

import type { Random } from '../../support/index.js';

export interface ModuleGraph {
  /** Text by path. */
  readonly files: Readonly<Record<string, string>>;
  /** The folder to start in, the arguments of `node`, and its standard input. */
  readonly start: readonly [folder: string, args: readonly string[], stdin: string];
}

type Format = 'esm' | 'dual' | 'exports' | 'object' | 'callable' | 'compiled';

interface Module {
  readonly name: string;
  readonly format: Format;
  readonly isPackage: boolean;
  /** No module of its graph is in a circle: it may extend a class of another. */
  readonly isOfTree: boolean;
  /** True: it imports the program, which imports it. */
  readonly leadsBack: boolean;
  /** True: it starts a task while it loads. */
  readonly isStarter: boolean;
}

const formats: readonly Format[] = [
  'esm',
  'esm',
  'dual',
  'exports',
  'object',
  'callable',
  'compiled',
];

/** Exports of every module, so that names of different modules are equal. */
const exported = [
  ...['base', 'fn', 'arrow', 'Klass', 'make', 'makeInner', 'table', 'instance', 'Oops', 'lazy'],
];

const isImported = ({ format }: Module): boolean => format === 'esm' || format === 'dual';

function specifierOf({ name, format, isPackage }: Module, folder: string): string {
  return isPackage ? `p-${name}` : `${folder}${name}.${format === 'esm' ? 'mjs' : 'cjs'}`;
}

/** Code common to all formats. `dep` and `back` are expressions for what another module exports. */
function bodyOf(
  dice: Random,
  { name, isOfTree, leadsBack }: Module,
  dep: string | undefined,
  back: string | undefined,
): string {
  const isDerived = dep !== undefined && isOfTree && dice.next() < 0.4;
  const hides = dice.next() < 0.2 ? '#own' : 'own';
  const decorated = dice.pick(['fn', 'make', 'table', 'Klass', 'instance']);
  return `
const base = ${dice.integer(1, 50)};
let changed = 1;
changed = ${dice.integer(2, 9)};
function hidden(x) { return x * base + changed${leadsBack ? ' + program.config.size' : ''} }
function fn(x) { return ${dep === undefined ? '' : `x > 6 ? x : ${dep}.fn(x + 1) + `}hidden(x) }
const arrow = (x) => fn(x) - base;
const lazy = (x) => ${back === undefined ? 'x' : `x > 6 ? x : ${back}.lazy(x + 1) + ${back}.table.size`};
class Parent { who() { return this.constructor.name } }
class Klass extends ${isDerived ? `${dep}.Klass` : 'Parent'} {
  static of(n) { return new Klass(n) }
  ${hides} = changed;
  field = (x) => [x, this.n];
  constructor(n) { super(n); this.n = n + base }
  get() { return ['${name}', this.n, this.${hides}, hidden(1), this.who(), this.field(2)] }
}
class Inner { constructor(n) { this.n = n } get() { return hidden(this.n) } }
class Oops extends Error {
  constructor(message, n) { super(message); this.n = n }
  get twice() { return hidden(this.n) }
}
const make = (n) => { let seen = n; return (x) => x + seen + hidden(seen) };
const makeInner = (n) => new Inner(n);
const table = { base, fn, nested: { Klass, list: [arrow], make }, get size() { return base + changed } };
const instance = new Klass(7);
${dice.next() < 0.3 ? `${decorated}.extra = { note: '${name}', f: (x) => hidden(x) };` : ''}
`;
}

/** Statements that start a task and have no other effect. */
const starts = [
  'void run(() => 1);',
  'for (const each of [1]) void run(() => each);',
  'switch (1) { default: void run(() => 2) }',
  'label: { void run(() => 3); break label; }',
  'class Starter { static { void run(() => 4) } }',
  'class Starting { job = run(() => 5) } const starting = new Starting();',
  'const answer = ((first = run(() => 6)) => first)();',
  'const answer = ((start) => start)(() => run(() => 7))();',
  'const answers = [1, 2].map((each) => run(() => each));',
  'try { throw new Error() } catch { void run(() => 8) }',
  'const begin = async () => await run(() => 9); const begun = begin();',
];

/** Code of a module that starts a task, and marks that it was loaded. */
function startOfTask(dice: Random, { name, isStarter }: Module, load: string): string[] {
  const shown = `const shown = console.log('["loaded ${name}"]');`;
  return isStarter ? [load, shown, dice.pick(starts)] : [];
}

/** The text of an ES module, which may also have the module `back`, that imports it. */
function esmText(dice: Random, module: Module, of?: Module, back?: Module): string {
  const { isOfTree } = module;
  const lines: string[] = [];
  if (of !== undefined) {
    const from = `from '${specifierOf(of, './')}';`;
    const isNamed = isImported(of) && isOfTree && dice.next() < 0.4;
    if (isNamed) lines.push(`import { fn as fnOf, Klass as KlassOf } ${from}`);
    if (isNamed) lines.push('const dep = { fn: fnOf, Klass: KlassOf };');
    else lines.push(isImported(of) ? `import * as dep ${from}` : `import dep ${from}`);
    if (isImported(of) && dice.next() < 0.3) lines.push(`export * as sub ${from}`);
    if (dice.next() < 0.2) lines.push(`export * ${from}`);
  }
  if (back !== undefined) lines.push(`import * as back from '${specifierOf(back, './')}';`);
  if (module.leadsBack) lines.push("import * as program from '../main.mjs';");
  lines.push(...startOfTask(dice, module, "import { run } from 'manycore';"));
  const main = dice.pick(['fn', 'Klass', 'table', 'instance', 'function (x) { return hidden(x) }']);
  return `${lines.join('\n')}
${bodyOf(dice, module, of && 'dep', back && 'back')}
export { ${exported.join(', ')} };
export default ${main};
`;
}

function cjsText(dice: Random, module: Module, of?: Module, back?: Module): string {
  const { format } = module;
  const lines = ["'use strict';"];
  if (back !== undefined) lines.push(`const back = require('${specifierOf(back, './')}');`);
  if (of !== undefined) lines.push(`const dep = require('${specifierOf(of, './')}');`);
  if (module.leadsBack) lines.push("const program = require('../main.cjs');");
  lines.push(...startOfTask(dice, module, "const { run } = require('manycore');"));
  lines.push(bodyOf(dice, module, of && 'dep', back && 'back'));
  if (format === 'exports') lines.push(...exported.map((each) => `exports.${each} = ${each};`));
  if (format === 'object' || format === 'dual') {
    const inherited = of !== undefined && dice.next() < 0.3 ? '...dep, ' : '';
    lines.push(`module.exports = { ${inherited}${exported.join(', ')} };`);
  }
  if (format === 'callable') {
    const mains = [
      'function main(x) { return hidden(x) }',
      '(x) => hidden(x)',
      'class Main extends Klass {}',
    ];
    lines.push(`module.exports = ${dice.pick(mains)};`);
    lines.push(`Object.assign(module.exports, { ${exported.join(', ')} });`);
  }
  if (format === 'compiled') {
    lines.push("Object.defineProperty(exports, '__esModule', { value: true });");
    for (const each of exported) {
      const getter = `function () { return ${each}; }`;
      lines.push(
        `Object.defineProperty(exports, '${each}', { enumerable: true, get: ${getter} });`,
      );
    }
    lines.push(`exports.default = ${dice.pick(['fn', 'Klass', 'table'])};`);
  }
  return `${lines.join('\n')}\n`;
}

/** The files of a module; it imports one of `later`, and one of `earlier` in a circle. */
function filesOf(
  dice: Random,
  module: Module,
  later: readonly Module[],
  earlier: readonly Module[],
): Readonly<Record<string, string>> {
  const { name, format, isPackage, isOfTree } = module;
  const isReachable = (each: Module) => each.isPackage || !isPackage;
  const pickFrom = (list: readonly Module[], chance: number) =>
    list.length > 0 && dice.next() < chance ? dice.pick(list) : undefined;
  const reachable = later.filter(isReachable);
  const required = reachable.filter((each) => each.format !== 'esm');
  const sameKind = earlier.filter(
    (each) =>
      isReachable(each) && each.format === format && (format === 'esm' || format === 'exports'),
  );
  const cjs = () =>
    cjsText(dice, module, pickFrom(required, 0.7), pickFrom(sameKind, isOfTree ? 0 : 0.6));
  const esm = () =>
    esmText(dice, module, pickFrom(reachable, 0.7), pickFrom(sameKind, isOfTree ? 0 : 0.6));
  if (!isPackage) {
    return {
      [`lib/${name}.${format === 'esm' ? 'mjs' : 'cjs'}`]: format === 'esm' ? esm() : cjs(),
    };
  }
  const folder = `node_modules/p-${name}`;
  if (format === 'dual') {
    return {
      [`${folder}/package.json`]: '{"exports":{"import":"./a.mjs","require":"./b.cjs"}}',
      [`${folder}/a.mjs`]: esm(),
      [`${folder}/b.cjs`]: cjs(),
    };
  }
  return format === 'esm'
    ? {
        [`${folder}/package.json`]: '{"type":"module","exports":"./lib/index.js"}',
        [`${folder}/lib/index.js`]: esm(),
      }
    : { [`${folder}/package.json`]: '{"main":"lib"}', [`${folder}/lib/index.js`]: cjs() };
}

/**
 * Import of a module by the program: a statement, and an expression for each of its exports. `mayAwait`: no
 * import waits for the program.
 */
function binding(
  dice: Random,
  module: Module,
  isEsm: boolean,
  mayAwait: boolean,
): readonly [statement: string, of: (name: string) => string] {
  const { name } = module;
  const specifier = specifierOf(module, './lib/');
  const used = exported.filter((each) => each !== 'base' && each !== 'lazy');
  const named = used.map((each) => `${each}${isEsm ? ' as ' : ': '}${each}_${name}`).join(', ');
  const byName = (each: string) =>
    used.includes(each) ? `${each}_${name}` : `held_${name}.${each}`;
  const byHolder = (each: string) => `held_${name}.${each}`;
  const holder = isEsm
    ? `import * as held_${name} from '${specifier}';`
    : `const held_${name} = require('${specifier}');`;
  const names = isEsm
    ? `import { ${named} } from '${specifier}';`
    : `const { ${named} } = held_${name};`;
  const box = `const box_${name} = { inner: held_${name} };`;
  const isNamed = !isEsm || isImported(module) || /exports|compiled/.test(module.format);
  const ways: (readonly [string, (each: string) => string])[] = [];
  if (isNamed) {
    ways.push([holder, byHolder], [`${holder}\n${names}`, byName]);
    ways.push([`${holder}\n${box}`, (each) => `box_${name}.inner.${each}`]);
  }
  if (isEsm && isNamed && mayAwait) {
    const awaited = `const held_${name} = await import('${specifier}');`;
    ways.push([awaited, byHolder]);
    ways.push([`${awaited}\nconst { ${named.replaceAll(' as ', ': ')} } = held_${name};`, byName]);
  }
  if (isEsm && !isImported(module)) {
    const required = `createRequire(import.meta.url)('${specifier}')`;
    ways.push([`const held_${name} = ${required};`, byHolder]);
    ways.push([`import held_${name} from '${specifier}';`, byHolder]);
    if (mayAwait)
      ways.push([`const { default: held_${name} } = await import('${specifier}');`, byHolder]);
  }
  return dice.pick(ways);
}

/** Calls with what one module exports: code of a callback, then its arguments. */
function callsWith(of: (name: string) => string, name: string): readonly string[] {
  const Klass = of('Klass');
  return [
    `() => ${of('fn')}(3)`,
    `() => ${of('arrow')}(3) + ${of('lazy')}(4)`,
    `() => ${Klass}.of(4).get()`,
    `(it) => [it instanceof ${Klass}, it.get()], new ${Klass}(5)`,
    `() => [kept_${name} instanceof ${Klass}, kept_${name}.get(), kept_${name}.constructor === ${Klass}]`,
    `() => made_${name}(2)`,
    `() => inner_${name}.get()`,
    `() => ${of('makeInner')}(3).get()`,
    `() => [${of('table')}.nested.list[0](1), ${of('table')}.size]`,
    `() => [${of('table')}.fn === ${of('fn')}, new ${of('table')}.nested.Klass(1) instanceof ${Klass}]`,
    `(f) => [f(2), f.name], ${of('fn')}`,
    `(C) => [C.of(1).get(), C === ${Klass}], ${Klass}`,
    `(t) => [t.fn(3), t.nested.make(1)(2), t.size], ${of('table')}`,
    `() => ${of('instance')}.get()`,
    `() => new Sub_${name}(1).get()`,
    `(it) => [it.get(), it instanceof ${Klass}], new Sub_${name}(2)`,
    `() => bound_${name}()`,
    `() => { throw new ${of('Oops')}('no', 3) }`,
    `(e) => [e.message, e.twice, e instanceof ${of('Oops')}, e instanceof Error], new ${of('Oops')}('given', 4)`,
    `() => new ${Klass}(8)`,
    `() => [${of('fn')}, ${of('table')}].map((it) => typeof it.extra?.f === 'function' && it.extra.f(2))`,
    `() => own_${name}.call(2)`,
    `(key) => Object.keys(${of('table')}).concat(typeof ${of('table')}[key]), 'fn'`,
  ];
}

const prepared = (of: (name: string) => string, name: string): string => `
const kept_${name} = new (${of('Klass')})(6);
const made_${name} = ${of('make')}(3);
const inner_${name} = ${of('makeInner')}(4);
const bound_${name} = ${of('instance')}.get.bind(${of('instance')});
class Sub_${name} extends ${of('Klass')} { get() { return ['sub', ...super.get()] } }
const own_${name} = { call: (x) => ${of('fn')}(x) + state };
`;

/** Calls of the program. A refusal names a path or the module that cannot be loaded. */
const ending = `
const see = (value) => inspect(value, { depth: 8, breakLength: Infinity, getters: true });
const seeError = (e) => see([e.name, e.message, e.n, e.twice, e.constructor.name]);
const outcome = async (body) => {
  try { return [see(await body()), undefined] } catch (e) { return [seeError(e), e] }
};
const isRefusal = (e) => /^TRANSFER_/.test(e?.code ?? '') && /\\n {2}path: |cannot be imported|^the result cannot travel: /.test(e.message);
async function all(pool, calls) {
  const counts = { same: 0, refused: 0, differs: 0 };
  for (const [text, fn, ...args] of calls) {
    const [there, error] = await outcome(() => pool.run(fn, ...args));
    const [home] = await outcome(() => fn(...args));
    if (there === home) counts.same += 1;
    else if (isRefusal(error)) counts.refused += 1;
    else counts.differs += 1;
    if (there !== home) console.log(JSON.stringify([isRefusal(error) ? 'refused' : 'differs', text, home, there]));
  }
  await pool.close();
  console.log(JSON.stringify(counts));
}
`;

/** Ways to start a program of the kind. */
function startOf(dice: Random, isEsm: boolean): ModuleGraph['start'] {
  const file = isEsm ? './main.mjs' : './main.cjs';
  const load = isEsm ? `import('${file}')` : `require('${file}')`;
  const starts: ModuleGraph['start'][] = [
    ['.', [file], ''],
    ['.', ['.'], ''],
    ['lib', ['..'], ''],
    ['.', ['--import', file, '-e', '0'], ''],
    ['.', ['-e', load], ''],
    ['.', ['--input-type=module', '-e', `await import('${file}')`], ''],
    ['.', [], load],
    ['.', ['runner.mjs'], ''],
    ['.', ['thread.cjs'], ''],
  ];
  if (!isEsm) starts.push(['.', ['-r', file, '-e', '0'], '']);
  return dice.pick(starts);
}

export function moduleGraph(dice: Random): ModuleGraph {
  const isOfTree = dice.next() < 0.6;
  const isEsm = dice.next() < 0.6;
  const modules = Array.from({ length: dice.integer(2, 6) }, (_, at): Module => {
    const format = dice.pick(formats);
    const isPackage = format === 'dual' || dice.next() < 0.3;
    const canLead = !isPackage && (isEsm ? format === 'esm' : !/esm|compiled/.test(format));
    const leadsBack = canLead && dice.next() < 0.25;
    const isStarter = !isPackage && dice.next() < 0.15;
    return { name: `m${at}`, format, isPackage, isOfTree, leadsBack, isStarter };
  });
  const file = isEsm ? './main.mjs' : './main.cjs';
  const files: Record<string, string> = {
    'package.json': JSON.stringify({ main: file }),
    'lib/folder.txt': '',
    'runner.mjs': `await import('${file}');`,
    'thread.cjs': `new (require('node:worker_threads').Worker)('${file}');`,
  };
  for (const [at, module] of modules.entries())
    Object.assign(files, filesOf(dice, module, modules.slice(at + 1), modules.slice(0, at)));
  const mayAwait = !modules.some(({ leadsBack }) => leadsBack);
  const statements: string[] = [];
  const setUp: string[] = [];
  const calls: string[] = [];
  for (const module of modules.filter((each) => isEsm || each.format !== 'esm')) {
    const [statement, of] = binding(dice, module, isEsm, mayAwait);
    statements.push(statement);
    setUp.push(prepared(of, module.name));
    calls.push(...callsWith(of, module.name).filter(() => dice.next() < 0.6));
  }
  const own = isEsm
    ? `import { createRequire } from 'node:module';
import { inspect } from 'node:util';
import { Pool } from 'manycore';`
    : `const { inspect } = require('node:util');
const { Pool } = require('manycore');`;
  const worker = dice.pick(['process', 'thread']);
  files[file.slice(2)] = `${own}
console.log('["loaded"]');
${isEsm ? 'export const config' : 'const config = exports.config'} = { size: 3 };
${statements.join('\n')}
let state = 1;
state = ${dice.integer(2, 9)};
${setUp.join('')}${ending}
const calls = [
${calls.map((call) => `  [${JSON.stringify(call)}, ${call}],`).join('\n')}
];
const start = () => all(new Pool({ size: 1, worker: '${worker}' }), calls);
// Node warns of what is read of CommonJS exports in a circle until the program is loaded.
${isEsm ? 'await start();' : 'setImmediate(start);'}
`;
  return { files, start: startOf(dice, isEsm) };
}
