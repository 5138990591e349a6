// Programs that change the built-in objects of the language: additions to prototypes, and replacements. Calls
// give the same as in an unchanged program. Left out are changes that break the language itself (`return` on
// `Object.prototype`: `const [a] = [1]` throws) or Node (an import, or a new thread).

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { readRepositoryFile, sourceFilesOf } from '../support/repository.js';
import { runProgram } from './child.js';
import { type HostileProgram, hostileProgram, packed } from './hostile-program.js';

type Results = Record<string, string>;
type Line = readonly [what: string, came: Results];

async function resultsOf(t: TestContext, program: HostileProgram): Promise<Line[]> {
  // One core: the default pool has one worker.
  const { stdout, stderr } = await runProgram(t, hostileProgram(program), {
    env: { MANYCORE_CORES: '1' },
  });
  const lines = stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
    .map(({ what, came }: { what: string; came: Results }): Line => [what, came]);
  assert.ok(lines.length > 0, stderr);
  return lines;
}

const workers = ['process', 'thread'] as const;
type Worker = (typeof workers)[number];

interface Steps {
  /** Results of a program without changes. */
  readonly clean: Results;
  readonly lines: readonly Line[];
}

const known = new Map<Worker, Promise<Steps>>();

/** All steps in one program: each is undone before the next. */
function stepsOf(t: TestContext, worker: Worker): Promise<Steps> {
  const steps = `{ ...${pollutions(worker === 'process')}, ...${replacements} }`;
  const begun =
    known.get(worker) ??
    resultsOf(t, { worker, steps }).then(([[, clean] = ['', {}], ...lines]) => ({ clean, lines }));
  known.set(worker, begun);
  return begun;
}

/** Runs both kinds of workers at a time. */
async function checkSteps(t: TestContext, matches: (what: string) => boolean): Promise<void> {
  const both = await Promise.all(workers.map((worker) => stepsOf(t, worker)));
  for (const [at, { clean, lines }] of both.entries()) {
    const selected = lines.filter(([what]) => matches(what));
    assert.ok(selected.length > 4);
    assert.deepEqual(differences(workers[at] ?? '', clean, selected), []);
  }
}

function differences(worker: string, clean: Results, lines: readonly Line[]): string[] {
  return lines.flatMap(([what, came]) =>
    Object.entries(came)
      .filter(([call, result]) => result !== clean[call])
      .map(([call, result]) => `${worker} ${what}: ${call} ${result} and not ${clean[call]}`),
  );
}

/** Runs the programs beside each other. */
async function checkSame(t: TestContext, ...programs: HostileProgram[]): Promise<void> {
  const all = programs.map(async (program) => {
    const lines = await resultsOf(t, program);
    const { clean } = await stepsOf(t, program.worker);
    return differences(program.worker, clean, lines);
  });
  assert.deepEqual((await Promise.all(all)).flat(), []);
}

/** Parts of descriptors, options and results. */
const names = (
  'get set value writable enumerable configurable then toJSON constructor length name message code cause ' +
  'stack signal worker transfer retry key timeoutMs type kind id path url next done error result objectId ' +
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

/** Number of names added at a time: a fault of one shows beside others. */
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

test('calls are the same with names of descriptors and options on Object.prototype', async (t) => {
  await checkSteps(t, (what) => what.split(' ').every((name) => names.includes(name)));
});

test('all calls are the same with such names there before the library loads', async (t) => {
  await checkSame(
    t,
    { worker: 'process', before: pollute(harmless, true) },
    { worker: 'thread', before: pollute(harmless, false) },
  );
});

test('all calls are the same with such names there in the workers', async (t) => {
  await checkSame(
    t,
    { worker: 'process', setup: pollute(harmless, false) },
    { worker: 'thread', setup: pollute(harmless, true) },
  );
});

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
  const { from } = Buffer;
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
    'JSON.stringify that throws': replace(JSON, 'stringify', () => { throw new Error('no JSON'); }),
    'Buffer.from that gives the same': replace(Buffer, 'from', (...args) => from(...args)),
    'toJSON of lists': replace(Array.prototype, 'toJSON', () => 'wrong'),
    'members of Array.prototype': replace(Array.prototype, 'last', function () { return this.at(-1); }),
    'members of Function.prototype': replace(Function.prototype, 'method', function () { return this; }),
    'members of Object.prototype': replace(Object.prototype, 'extend', function () { return this; }),
  };
})()`;

test('calls are the same with each built-in function replaced', async (t) => {
  await checkSteps(t, (what) => what.split(' ').some((name) => !names.includes(name)));
});

test('process: all calls are the same with functions replaced before the library loads', async (t) => {
  const before = `for (const [what, step] of Object.entries(${replacements})) {
    if (what.startsWith('JSON') || !what.endsWith('that throws')) step();
  }`;
  await checkSame(t, { worker: 'process', before });
});

/** Names that the sources assign to. */
function assignedNames(): string[] {
  const found = new Set<string>();
  for (const file of sourceFilesOf(['channels', 'context', 'worker', 'lib', 'pmap', 'pool'])) {
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
  const setters = `const ours = new URL('./', ${JSON.stringify(packed)}).href;
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
  await checkSame(t, { worker: 'process', after: setters });
});

test('all calls are the same with frozen prototypes', async (t) => {
  await checkSame(
    t,
    { worker: 'process', after: freezeAll },
    { worker: 'thread', before: freezeAll },
  );
});

for (const [what, replacement] of [
  ['gives nothing', 'Buffer.from = () => Buffer.alloc(0);'],
  [
    'gives no Buffer',
    'const { from } = Buffer; Buffer.from = (...args) => new Uint8Array(from(...args));',
  ],
] as const) {
  test(`a Buffer.from that ${what} is refused by name, at once`, async (t) => {
    const text = `${replacement}
      const { Pool } = await import(${JSON.stringify(packed)});
      for (const worker of ['process', 'thread']) {
        const pool = new Pool({ size: 1, worker });
        await pool.run(() => 1).catch(({ code, message }) => console.log(code, message));
        await pool.close();
      }
      process.exit(0);`;
    const { stdout, stderr } = await runProgram(t, text);
    const said = stdout.trim().split('\n');
    assert.equal(said.length, 2, stderr);
    for (const each of said) {
      assert.match(each, /^WORKER_START_FAILED .*replaced Buffer\.from.*put Node's own back/);
    }
  });
}
