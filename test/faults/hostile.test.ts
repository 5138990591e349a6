// Programs that change the built-in objects of the language: what they add to prototypes and what they replace.
// Calls give the same as in a program that leaves them alone. Left out is what breaks the language itself
// (`return` on `Object.prototype`: `const [a] = [1]` throws) or Node (an import, or a new thread).

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { readRepositoryFile, sourceFiles } from '../support/repository.js';
import { library, runProgram } from './child.js';
import { type HostileProgram, hostileProgram } from './hostile-program.js';

type Results = Record<string, string>;

async function resultsOf(t: TestContext, program: HostileProgram): Promise<[string, Results][]> {
  const { stdout, stderr } = await runProgram(t, hostileProgram(program));
  const lines: [string, Results][] = stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
  assert.ok(lines.length > 0, stderr);
  return lines;
}

const hosts = ['process', 'thread'] as const;
const cleanResults = new Map<string, Results>();

/** Results of a program that changes nothing. */
async function clean(t: TestContext, host: 'process' | 'thread'): Promise<Results> {
  const known = cleanResults.get(host);
  if (known !== undefined) return known;
  const [[, came] = ['', {}]] = await resultsOf(t, { host });
  cleanResults.set(host, came);
  return came;
}

async function checkSame(t: TestContext, program: HostileProgram): Promise<void> {
  const expected = await clean(t, program.host);
  const different: string[] = [];
  for (const [what, came] of await resultsOf(t, program)) {
    for (const [call, result] of Object.entries(came)) {
      if (result !== expected[call]) {
        different.push(`${what}: ${call} ${result} and not ${expected[call]}`);
      }
    }
  }
  assert.deepEqual(different, []);
}

/** Parts of descriptors, options and results. */
const names = (
  'get set value writable enumerable configurable then toJSON constructor length name message code cause ' +
  'stack signal host transfer retry key timeoutMs type kind id path url next done error result objectId ' +
  'description object method params scriptId'
).split(' ');
/** With these Node can import nothing. */
const breaksImports = new Set(['get', 'set', 'value', 'writable', 'signal', 'path']);
const harmless = names.filter((name) => !breaksImports.has(name));

/** Adds `list` to `Object.prototype`. */
const pollute = (list: readonly string[], isEnumerable: boolean) => `
  for (const name of ${JSON.stringify(list)}) {
    Object.defineProperty(Object.prototype, name, {
      __proto__: null, value: 'polluted', enumerable: ${isEnumerable}, writable: true, configurable: true,
    });
  }`;

/** So many names at a time: a fault of one shows beside others. */
const namesAtOnce = 6;

/** A step for each few names. */
const pollutions = (isEnumerable: boolean) => `(() => {
  const names = ${JSON.stringify(names)};
  const steps = {};
  for (let at = 0; at < names.length; at += ${namesAtOnce}) {
    const some = names.slice(at, at + ${namesAtOnce});
    const add = (name) => {
      const before = own(Object.prototype, name);
      define(Object.prototype, name, { value: 'polluted', enumerable: ${isEnumerable}, writable: true, configurable: true });
      return () => {
        if (before === undefined) delete Object.prototype[name];
        else define(Object.prototype, name, before);
      };
    };
    steps[some.join(' ')] = () => {
      const undo = some.map(add);
      return () => { for (const each of undo) each(); };
    };
  }
  return steps;
})()`;

for (const host of hosts) {
  const isEnumerable = host === 'process';
  test(`${host}: calls are the same with names of descriptors and options on Object.prototype`, async (t) => {
    await checkSame(t, { host, steps: pollutions(isEnumerable) });
  });

  test(`${host}: all calls are the same with such names there before the library loads`, async (t) => {
    await checkSame(t, { host, before: pollute(harmless, isEnumerable) });
  });

  test(`${host}: all calls are the same with such names there in the hosts`, async (t) => {
    await checkSame(t, { host, setup: pollute(harmless, !isEnumerable) });
  });
}

/** Each replaces something and returns how to put it back. */
const replacements = `(() => {
  const replace = (holder, key, value) => () => {
    const before = own(holder, key);
    if (value === undefined) delete holder[key];
    else define(holder, key, { value, writable: true, enumerable: before?.enumerable ?? true, configurable: true });
    return () => (before === undefined ? delete holder[key] : define(holder, key, before));
  };
  const { then } = Promise.prototype;
  const { values } = Array.prototype;
  return {
    'Function.prototype.toString': replace(Function.prototype, 'toString', () => 'function () { return "wrong"; }'),
    'Function.prototype.toString that throws': replace(Function.prototype, 'toString', () => { throw new Error('no text'); }),
    'Error.prepareStackTrace': replace(Error, 'prepareStackTrace', (error, sites) => sites),
    'no Error.captureStackTrace': replace(Error, 'captureStackTrace', undefined),
    'Error.captureStackTrace that throws': replace(Error, 'captureStackTrace', () => { throw new Error('no trace'); }),
    'Error.stackTraceLimit of 0': replace(Error, 'stackTraceLimit', 0),
    'no Error.stackTraceLimit': replace(Error, 'stackTraceLimit', undefined),
    'Symbol.hasInstance of Error': replace(Error, Symbol.hasInstance, () => false),
    'Symbol.hasInstance of Object': replace(Object, Symbol.hasInstance, () => false),
    'Array.prototype[Symbol.iterator]': replace(Array.prototype, Symbol.iterator, function* () { yield* apply(values, this, []); }),
    'Promise.prototype.then': replace(Promise.prototype, 'then', function (...args) { return apply(then, this, args); }),
    'JSON.stringify': replace(JSON, 'stringify', () => '"wrong"'),
    'members of Array.prototype': replace(Array.prototype, 'last', function () { return this.at(-1); }),
    'members of Function.prototype': replace(Function.prototype, 'method', function () { return this; }),
    'members of Object.prototype': replace(Object.prototype, 'extend', function () { return this; }),
  };
})()`;

for (const host of hosts) {
  test(`${host}: calls are the same with each built-in function replaced`, async (t) => {
    await checkSame(t, { host, steps: replacements });
  });
}

test('process: all calls are the same with functions replaced before the library loads', async (t) => {
  // Hosts are started with what `JSON.stringify` makes.
  const before = `for (const [what, step] of Object.entries(${replacements})) {
    if (what !== 'JSON.stringify' && !what.endsWith('that throws')) step();
  }`;
  await checkSame(t, { host: 'process', before });
});

/** Names that the sources assign to. */
function assignedNames(): string[] {
  const found = new Set<string>();
  for (const file of sourceFiles()) {
    if (!/^src\/(?:channels|context|host|internal|pmap|pool)\//.test(file)) continue;
    const text = readRepositoryFile(file);
    for (const [, name = ''] of text.matchAll(/[\w)\]]\.(\w+) (?:\?\?|\|\||[-+|&])?= /g)) {
      found.add(name);
    }
  }
  // `buffer` is assigned by the deserializer of V8.
  return [...found].filter((name) => name !== 'buffer' && !breaksImports.has(name));
}

const freezeAll = `
  for (const each of [Object, Function, Array, Error, TypeError, RangeError, AggregateError, Map, Set, Promise]) {
    Object.freeze(each.prototype);
    Object.freeze(each);
  }`;

test('process: all calls are the same with setters on Object.prototype that throw', async (t) => {
  const setters = `const ours = new URL('./', ${JSON.stringify(library)}).href;
    for (const name of ${JSON.stringify(assignedNames())}) {
      if (Object.hasOwn(Object.prototype, name)) continue;
      Object.defineProperty(Object.prototype, name, {
        __proto__: null,
        configurable: true,
        get() { return undefined; },
        set(value) {
          const [, , by = ''] = new Error().stack.split('\\n');
          if (by.includes(ours)) throw new Error('assigned ' + name);
          define(this, name, { value, writable: true, enumerable: true, configurable: true });
        },
      });
    }`;
  await checkSame(t, { host: 'process', after: setters });
});

for (const [host, when] of [
  ['process', 'after'],
  ['thread', 'before'],
] as const) {
  test(`${host}: all calls are the same with prototypes frozen ${when} the library loads`, async (t) => {
    await checkSame(t, { host, [when]: freezeAll });
  });
}
