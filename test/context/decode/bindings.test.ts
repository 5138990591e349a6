// The bindings of captured values in re-created code: constants where nothing assigns them, so that V8
// compiles them as at home, and the same results as at home in every order in which values arrive.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import vm from 'node:vm';
import { factoryText, usualPlan } from '../../../src/context/decode/factory.js';
import { type AnyFunction, createExporter, createImporter } from '../../../src/context/index.js';
import { type CodeDefinition, parseDefinition } from '../../../src/context/protocol.js';
import { format, read } from '../../../src/context/wire.js';
import { runElsewhere } from '../elsewhere.js';
import { Peer } from '../harness.js';

type Fn = (...args: number[]) => unknown;

const peer = new Peer();
after(() => peer.close());

const source = `
const limit = 10, step = 3;
let rate = 2, count = 0, unassigned = 4;
const table = new Float64Array([1, 2, 3]);
const fib = (n) => (n < 2 ? n : fib(n - 1) + fib(n - 2));
const isEven = (n) => n === 0 || isOdd(n - 1);
const isOdd = (n) => n !== 0 && isEven(n - 1);
function ping(n) { return n === 0 ? 'ping' : pong(n - 1) }
const pong = (n) => (n === 0 ? 'pong' : ping(n - 1));
class Point { constructor(x) { this.x = x } move() { this.x += step; return shift(this) } static of(x) { return new Point(x * limit) } }
const shift = (point) => point instanceof Point ? point.x : undefined;
const max = Math.max.bind(null, limit);
const both = (n) => [max(n), shift(Point.of(n)), both.name];
export const functions = {
  constants: () => limit + step + table[1],
  read: () => rate + unassigned,
  written: () => { count += 1; return [count, rate] },
  assignsConstant: () => { try { limit = 2 } catch (error) { return [error.name, error.message, limit] } },
  incrementsConstant: () => { try { step++ } catch (error) { return error.message } },
  recursion: () => fib(12),
  group: () => [isEven(10), isOdd(7), ping(3), pong(3)],
  classes: () => [new Point(1).move(), Point.of(2).move(), shift(new Point(7))],
  bound: () => both(20),
  itself: () => functions.constants(),
  object: () => Object.keys(functions).length,
};
`;

/** One module for each, because an `eval` sees all variables of its module. */
const withEval = [
  "reads: () => eval('limit + rate')",
  "writes: () => eval('rate = 9; rate + limit')",
  "evalAssigns: () => { try { eval('limit = 9') } catch (error) { return error.message } }",
].map((member) => `const limit = 10; let rate = 2; export const functions = { ${member} }`);

async function load(text: string): Promise<{ functions: Record<string, Fn> }> {
  return import(`data:text/javascript,${encodeURIComponent(text)}`);
}

/** The function that the body `text` returns. */
function compiled(text: string): () => Fn {
  return vm.runInThisContext(`(function () { ${text} })`);
}

function definitionsOf(fn: AnyFunction): CodeDefinition[] {
  const exporter = createExporter();
  const { definitions } = exporter.exportFunction(fn);
  return definitions.flatMap((id) => {
    const { format: as, value } = read(exporter.definition(id), undefined);
    assert.equal(as, format.definition);
    const definition = parseDefinition(value);
    return definition.kind === 'code' ? [definition] : [];
  });
}

test('captured values of all kinds give the results of home', async () => {
  for (const text of [source, ...withEval]) {
    const { functions } = await load(text);
    for (const [title, fn] of Object.entries(functions)) {
      const there = runElsewhere(fn, []);
      assert.deepEqual(there, fn(), title);
    }
  }
});

test('only what the text assigns, or may assign by eval, is a variable', async () => {
  const loaded = await Promise.all([source, ...withEval].map(load));
  const functions: Record<string, Fn> = {};
  for (const each of loaded) Object.assign(functions, each.functions);
  const variablesOf = (name: string): readonly string[] => {
    const [definition] = definitionsOf(functions[name] ?? assert.fail(name));
    return definition?.variables ?? assert.fail('no code');
  };
  assert.deepEqual(variablesOf('constants'), []);
  assert.deepEqual(variablesOf('read'), []);
  assert.deepEqual(variablesOf('written'), ['count']);
  assert.deepEqual(variablesOf('assignsConstant'), []);
  const ofEval = variablesOf('writes');
  assert.ok(ofEval.includes('rate') && !ofEval.includes('limit'), ofEval.join());
});

test('a factory declares a constant for each value that comes in its stage', async () => {
  const { functions } = await load(source);
  const [definition] = definitionsOf(functions['written'] ?? assert.fail());
  assert.ok(definition !== undefined);
  assert.equal(usualPlan(definition), 'v0');
  const { prefix } = definition;
  const [before] = factoryText(definition, 'v0');
  assert.ok(before.includes(`let count=${prefix}s[0];const rate=${prefix}s[1];`), before);
  const [early, late] = factoryText(definition, '20');
  assert.ok(early.includes(`const count=`) === false && late.includes(`const count=`), late);
});

test('a function that assigns a captured constant throws the TypeError of home', async () => {
  const make = compiled('let limit = 3; return () => { limit = 4; return limit }');
  assert.equal(await peer.run(make()), 4); // a variable may be assigned
  const { functions } = await load(source);
  const fn = functions['assignsConstant'] ?? assert.fail();
  assert.deepEqual(await peer.run(fn), ['TypeError', 'Assignment to constant variable.', 10]);
});

test('a function that travels back holds the same values', async () => {
  const start = Number('5');
  const isEven = (n: number): boolean => n === 0 || isOdd(n - 1);
  const isOdd = (n: number): boolean => n !== 0 && isEven(n - 1);
  let count = Number('0');
  const back = await peer.run(() => {
    count += 1;
    return { next: () => start + count, isEven };
  });
  assert.equal(back.next(), 6);
  assert.equal(back.isEven, isEven);
  assert.equal(await peer.run(back.next), 6);
});

test('names that are words of generators and sloppy code work as captured names', async () => {
  for (const name of ['let', 'yield', 'static', 'async', 'await', 'of']) {
    const make = compiled(
      `var ${name} = 3; var f = function (n) { return n === 0 ? ${name} : f(n - 1) }; return f`,
    );
    assert.equal(runElsewhere(make(), [3]), 3, name);
    assert.equal(await peer.run(make(), 3), 3, name);
  }
});

/** A caller and a worker in this process, for several calls. */
function openRunner(): (fn: AnyFunction) => unknown {
  const exporter = createExporter();
  const importer = createImporter({ exporter: createExporter() });
  const sent = new Set<number>();
  return (fn) => {
    const { id, definitions, state } = exporter.exportFunction(fn);
    for (const each of definitions) {
      if (sent.has(each)) continue;
      sent.add(each);
      void importer.define(each, exporter.definition(each));
    }
    return importer.importFunction(id, state)();
  };
}

test('a class made anew reaches the constant functions that capture it', () => {
  const run = openRunner();
  const holder: { limit?: number } = {};
  class Base {
    static holder = holder;
    static limit = 1;
    isBase(): boolean {
      return this instanceof Base;
    }
  }
  const make = (): Base => new Base();
  const makeTwice = (): Base[] => [make(), make()];
  let calls = 0;
  const fn = (): unknown => {
    calls += 1;
    const [first] = makeTwice();
    return [first instanceof Base, first?.constructor === Base, first?.isBase(), Base.limit];
  };
  assert.deepEqual(run(fn), [true, true, true, 1]);
  Base.limit = 2;
  assert.deepEqual(run(fn), [true, true, true, 2]);
  Object.freeze(Base);
  assert.deepEqual(run(fn), [true, true, true, 2]);
  assert.deepEqual(run(fn), [true, true, true, 2]);
  assert.equal(calls, 0);
});

test('a frozen class whose captures change is made anew with its functions', () => {
  const run = openRunner();
  const value = { n: 1 };
  class Closed {
    static value = value;
    static read(): number {
      return Closed.value.n;
    }
    readonly isClosed = true;
  }
  Object.freeze(Closed);
  const readIt = (): number => Closed.read();
  const isIt = (given: unknown): boolean => given === Closed;
  let round = 0;
  const fn = (): unknown => {
    round += 1;
    return [readIt(), isIt(Closed), Closed.value === value];
  };
  for (let n = 1; n < 4; n += 1) {
    value.n = n;
    assert.deepEqual(run(fn), [n, true, true], `round ${n}`);
  }
  assert.equal(round, 0);
});
