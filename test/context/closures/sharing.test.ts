// Functions that share variables: the same result as at home, or a refusal where nothing decides whether they
// share them. Programs are random; `MANYCORE_RUNS=n` makes that many.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { closureReader } from '../../../src/context/closures/closure-reader.js';
import { type AnyFunction, createExporter, createImporter } from '../../../src/context/index.js';
import { hasCode } from '../../../src/errors.js';
import { withoutNativeCapture } from '../../support/closures.js';
import { type Random, random } from '../../support/index.js';
import { runElsewhere } from '../elsewhere.js';

const source = `let total = 0, last = 'none';
const add = (n) => { total += n; last = 'added'; return total };
const read = () => [total, last];
class Adder { add(n) { total += n; return this } get total() { return total } static reset() { total = 0 } }
let handler = () => 'first';
function replace() { handler = () => 'second' }
let count = 0;
function odd(given) {
  const before = { count, ...{ a: count } }
  ;({ count, x: count = 5 } = { count: 3 });
  [count = 1] = [];
  for (count of [count + 1, count + 2]) ;
  count ||= 9
  count++
  ;[count] = [-count, given]
  return [before, count, typeof count, \`\${count}\`]
}
let tag = (s) => 'plain';
function isBare() { tag = function () { return this === undefined }
  tag()
  return [tag\`x\`, tag(), tag?.(), tag.name] }
const counter = (from) => { let n = from; return () => ++n };
const pair = (from) => { let n = from; function up() { n += 1; return up } return { up, get: () => [n, typeof up] } };
const blind = (from) => { let n = from; return { up: () => ++n, get: () => n } };
const memo = (f) => { let made; return () => made ??= f() };
const loop = () => { const out = []; for (let i = 0; i < 2; i++) { let n = 0; out.push(() => ++n, () => ++n) } return out };
export const calls = {
  'two functions of the root': () => [() => [add(1), add(2), read()], []],
  'the callback itself writes': () => [() => { total = 7; return read() }, []],
  'a writer as argument': () => [(f) => { f(4); return [total, last] }, [add]],
  'a reader as argument': () => [(f) => { total = 9; return f() }, [read]],
  'a class and functions': () => [() => [new Adder().add(3).total, add(1), read()], []],
  'an instance as argument': () => [(adder) => { adder.add(3); Adder.reset(); return [adder.total, total] }, [new Adder()]],
  'a function in a variable': () => [() => { replace(); return [handler(), handler.name] }, []],
  'every way to use it': () => [() => [odd(1), odd(2), count], []],
  'every way to call it': () => [() => [isBare(), tag.name], []],
  'counters of one factory': () => { const a = counter(0), b = counter(0); return [() => [a(), a(), b()], []] },
  'memos of one factory': () => { const a = memo(() => 1), b = memo(() => 1); return [() => [a(), b(), a()], []] },
  'pairs of one factory': () => { const a = pair(1), b = pair(1); return [() => { a.up()(); b.up(); return [a.get(), b.get()] }, []] },
  'one half of each as argument': () => { const a = pair(1); return [(up) => { up(); return a.get() }, [a.up]] },
  'turns of a loop that share an object': () => { const fs = []; for (let x = 0, list = []; fs.length < 3; ) fs.push(() => { list.push(x); return [++x, list.length] }); return [() => fs.map((f) => f()), []] },
  'a variable of the function around': () => { let n = 0; const both = { up: () => ++n, get: () => n }; return [() => [both.up(), both.get(), n], []] },
};
export const contexts = {
  'a variable of for-of that is assigned': () => { const fs = []; for (let x of [1, 2]) fs.push(() => ++x, () => x); return [() => fs.map((f) => f()), []] },
  'a variable of for-in that is assigned': () => { const fs = []; for (let k in { a: 1, b: 2 }) fs.push(() => (k += '!'), () => k); return [() => fs.map((f) => f()), []] },
  'variables of for-of that are assigned': () => { const fs = []; for (let [x, { y = 3 }] of [[1, {}]]) fs.push(() => [++x, (y *= 2)], () => [x, y]); return [() => fs.map((f) => f()), []] },
  'turns of a loop that share a function': () => { const fs = []; for (let x = 0, own = () => x; fs.length < 2; ) fs.push(() => [++x, own()]); return [() => fs.map((f) => f()), []] },
  'halves of a scope that nothing names': () => { const a = blind(1), b = blind(1); return [() => { a.up(); b.up(); return [a.get(), b.get()] }, []] },
  'closures of a loop': () => { const fs = loop(); return [() => fs.map((f) => f()), []] },
  'a counter of a factory, in two closures': () => { const n = blind(3); const up = () => n.up(); return [() => { up(); return [n.get(), up(), n.get()] }, []] },
  'one half as argument': () => { const a = blind(1); return [(up) => { up(); return a.get() }, [a.up]] },
  'halves of two scopes with equal values': () => { const a = blind(1), b = blind(1); return [(up, get) => { up(); up(); return [get(), a.get(), b.up()] }, [a.up, b.get]] },
  'a variable without a value yet': () => { const later = () => { let n; return { up: () => (n = (n ?? 0) + 1), get: () => n } }; const a = later(), b = later(); return [() => { a.up(); return [a.get(), b.get()] }, []] },
  'scopes around scopes': () => { const nest = (n) => { let m = n; return { up: () => { m += n; n += 1; return m }, inner: () => { let k = 0; return () => [++k, m, n] } } }; const a = nest(1), b = nest(1); const [x, y] = [a.inner(), a.inner()]; return [() => [a.up(), x(), y(), b.inner()(), x()], []] },
};
`;

interface Calls {
  readonly [title: string]: () => readonly [fn: AnyFunction, args: readonly unknown[]];
}

async function load(text: string): Promise<{ calls: Calls; contexts: Calls }> {
  return import(`data:text/javascript,${encodeURIComponent(text)}`);
}

test('functions that share a variable share it in the worker', async () => {
  const { calls } = await load(source);
  for (const [title, make] of Object.entries(calls)) {
    const [fn, args] = make();
    const elsewhere = runElsewhere(fn, args);
    assert.deepEqual(elsewhere, Reflect.apply(fn, undefined, [...args]), title);
  }
});

test('functions share a variable where only their contexts show it', {
  skip: withoutNativeCapture(),
}, async () => {
  const { contexts } = await load(source);
  for (const [title, make] of Object.entries(contexts)) {
    const [fn, args] = make();
    // The first export learns the code around the functions, by the inspector; later ones read it.
    for (let turn = 0; turn < 3; turn += 1) {
      const elsewhere = runElsewhere(fn, args);
      const [again, others] = make();
      assert.deepEqual(elsewhere, Reflect.apply(again, undefined, [...others]), title);
    }
  }
});

test('without the native reader such functions are refused', {
  skip: closureReader() !== undefined && 'the native reader sees their contexts',
}, async () => {
  const { contexts } = await load(source);
  for (const [title, make] of Object.entries(contexts)) {
    const [fn, args] = make();
    assert.throws(
      () => runElsewhere(fn, args),
      (error) => hasCode(error, 'TRANSFER_SHARED_VARIABLE') && /perWorker/.test(String(error)),
      title,
    );
  }
});

test('a function with shared variables goes on to another worker with them', async () => {
  const { calls } = await load(source);
  const [fn] = calls['pairs of one factory']?.() ?? [];
  assert.ok(fn);
  const worker = createExporter();
  const importer = createImporter({ exporter: worker });
  const exporter = createExporter();
  const { id, definitions, state } = exporter.exportFunction(fn);
  for (const each of definitions) void importer.define(each, exporter.definition(each));
  const there = importer.importFunction(id, state);
  assert.deepEqual(runElsewhere(there, []), Reflect.apply(fn, undefined, []));
});

/** A module with variables at its root and in factories, and closures that use them. */
function program(chance: Random): string {
  const variables = ['r0', 'r1', 'v0', 'v1'];
  const use = (names: readonly string[]): string => {
    const [a, b] = [chance.pick(names), chance.pick(names)];
    return chance.pick([
      `() => ${a}`,
      `() => ++${a}`,
      `function () { ${a} += ${b}; return [${a}, ${b}] }`,
      `(n = 1) => { ${a} = ${b} + n; return { ${a}, b: ${b} } }`,
      `() => { const f = () => { ${a} *= 2 }; f(); return ${a} - ${b} }`,
      `() => (state.n += ${a})`,
    ]);
  };
  const lines = ['let r0 = 1, r1 = 2;', 'export function make(k = 0) {'];
  lines.push('let v0 = k, v1 = 5; const state = { n: 0 };');
  for (let at = 0; at < 2; at += 1) {
    const witness = chance.pick([
      '',
      'const own = []; own.push(0);',
      'function self() { return self && n }',
    ]);
    const extra = witness.startsWith('const')
      ? ', () => own.length'
      : witness === ''
        ? ''
        : ', self';
    const many = chance.pick(['', '', 'for (const i of [1, 2])']);
    lines.push(
      `const mk${at} = (n) => { let m = n; ${witness} const made = []; ` +
        `${many} made.push(${use([...variables, 'n', 'm'])}, ${use(['n', 'm'])}${extra}); return made };`,
    );
  }
  const named = `const f0 = ${use(variables)}; function f1() { ${chance.pick(variables)}++; return f0() }`;
  const shape = `class Shape { grow() { ${chance.pick(variables)} += 3; return this } size() { return ${chance.pick(variables)} } }`;
  lines.push(named, shape);
  const functions = ['f0', 'f1', '...mk0(1)', '...mk0(1)', '...mk1(2)', `...[${use(variables)}]`];
  const chosen = Array.from({ length: chance.integer(1, 5) }, () => chance.pick(functions));
  lines.push(`const fs = [${chosen.join()}];`);
  const steps = Array.from({ length: chance.integer(2, 8) }, () =>
    chance.pick([
      'for (const f of fs) log.push(f());',
      'log.push(fs[0](), fs.at(-1)());',
      'if (given) log.push(given());',
      `log.push(${chance.pick(variables)});`,
      `${chance.pick(variables)} += 10;`,
      'if (held) { held.n += 1; log.push(state.n, held.n, held === state); }',
      'if (shape) log.push(shape.grow().size());',
    ]),
  );
  const pass = (name: string): string => (chance.next() < 0.4 ? name : 'undefined');
  lines.push(
    `const fn = (given, held, shape) => { const log = []; ${steps.join(' ')} return JSON.stringify(log) };`,
    `return [fn, [${pass(chance.pick(['f0', 'f1', 'fs[0]']))}, ${pass('state')}, ${pass('new Shape()')}]];`,
    '}',
  );
  return lines.join('\n');
}

test('random programs give the same as at home, or are refused', async (t) => {
  const chance = random(t);
  const runs = Number(process.env['MANYCORE_RUNS'] ?? 25);
  let same = 0;
  for (let run = 0; run < runs; run += 1) {
    const text = program(chance);
    const { make } = await import(`data:text/javascript,${encodeURIComponent(`${text}//${run}`)}`);
    const [fn, args] = make();
    let elsewhere: unknown;
    try {
      elsewhere = runElsewhere(fn, args);
    } catch (error) {
      assert.ok(hasCode(error, 'TRANSFER_SHARED_VARIABLE'), `${String(error)}\n${text}`);
      continue;
    }
    assert.equal(elsewhere, Reflect.apply(fn, undefined, args), text);
    same += 1;
  }
  t.diagnostic(`${same} of ${runs} as at home`);
  assert.ok(same > runs / 4);
});
