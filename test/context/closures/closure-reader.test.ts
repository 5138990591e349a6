// Captured variables, read natively: against the program's own answer and the inspector; and functions that must
// not be read so.

import assert from 'node:assert/strict';
import { Session } from 'node:inspector';
import { test } from 'node:test';
import { format } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import vm from 'node:vm';
import { Captures, contextAround } from '../../../src/context/closures/capture.js';
import {
  closureReader,
  closureReaderProblem,
} from '../../../src/context/closures/closure-reader.js';
import { type Capture, inspectSelf } from '../../../src/context/closures/inspector.js';
import { variablesIn } from '../../../src/context/closures/scopes.js';
import { nativeBinding } from '../../../src/native.js';
import { random } from '../../support/index.js';
import { type Made, randomScopes } from './random-scopes.js';

const reader = nativeBinding() === undefined ? undefined : closureReader();
const skip = reader === undefined && 'there is no native binary';

/** The values that `fn` captured; `undefined`: they cannot be read. */
function read(fn: object, names: readonly string[]): unknown[] | undefined {
  const number = reader?.learn(fn, names) ?? 0;
  const values: unknown[] = [];
  const isRead = number !== 0 && reader?.read(fn, values) === number;
  reader?.forget(fn);
  return isRead ? values : undefined;
}

test('this runtime has the layout that is read', { skip }, () => {
  assert.equal(closureReaderProblem(), undefined);
});

/** Programs of each kind: `MANYCORE_ROUNDS=8000` for about a million readings in all. */
const rounds = Number(process.env['MANYCORE_ROUNDS'] ?? 100);

const kinds = ['strict', 'sloppy', 'module'] as const;

/** The result of the function itself; `undefined`: a variable of it has no value yet. */
function ownOf(fn: () => unknown[]): unknown[] | undefined {
  try {
    return fn();
  } catch (error) {
    if (error instanceof ReferenceError) return undefined;
    throw error;
  }
}

/** Names and values of the variables of each scope; those without a value are left out. */
function variablesOf({ scopes, ofScripts }: Capture) {
  const own = scopes.filter((scope) => scope !== ofScripts && Object.keys(scope).length > 0);
  return own.map((scope) => variablesIn(scope).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** Fails where all scopes of a function, read natively, differ from those of the inspector. True: they were read. */
function compareScopes(fn: Made['fn'], text: string): boolean {
  const captures = new Captures();
  captures.of(fn);
  captures.forget();
  const read = captures.of(fn);
  const shown = variablesOf(inspectSelf().capture(fn));
  const found = variablesOf(read);
  const isSame = shown.every((scope, at) =>
    scope.every(([name, value], order) => {
      const [other, held] = found[at]?.[order] ?? [];
      return name === other && Object.is(value, held);
    }),
  );
  assert.ok(isSame && shown.length === found.length, `${format(shown, found)} in ${text}`);
  return contextAround(read.scopes[0]) !== undefined;
}

/** Fails where the inspector shows another value. Returns the number of values that it shows. */
function compareWithInspector(
  { fn, names }: Made,
  values: readonly unknown[],
  text: string,
): number {
  const { scopes } = inspectSelf().capture(fn);
  let count = 0;
  for (const [at, name] of names.entries()) {
    // V8 lists neither `this` nor the name that a function expression gives itself.
    if (name === 'this' || text.includes(`(function ${name}(`)) continue;
    const scope = scopes.find((each) => Object.hasOwn(each, name));
    if (scope === undefined) continue;
    count += 1;
    const shown = Reflect.get(scope, name);
    assert.ok(Object.is(shown, values[at]), `${name}: ${String(shown)} in ${text}`);
  }
  return count;
}

for (const kind of kinds) {
  test(`functions in random scopes have what program and inspector see: ${kind}`, {
    skip,
  }, async (t) => {
    const seeded = random(t);
    const count = { readings: 0, unset: 0, found: 0, shown: 0, scopes: 0, read: 0 };
    for (let round = 0; round < rounds; round += 1) {
      const { made, text } = await randomScopes(seeded, kind);
      // Functions of one piece of code, as those of a loop, are read by what was learnt from the first.
      const numbers = made.map(({ fn, names }) => reader?.learn(fn, names) ?? 0);
      for (const [at, each] of made.entries()) {
        const { fn, names, change } = each;
        for (const to of [undefined, 1, 2 ** 33, 0.5, 'text', [1]]) {
          if (to !== undefined) change(to);
          if (to !== 1) {
            count.scopes += 1;
            if (compareScopes(fn, text)) count.read += 1;
          }
          count.readings += 1;
          const own = ownOf(fn);
          if (own === undefined) count.unset += 1;
          const values: unknown[] = [];
          if (reader?.read(fn, values) !== numbers[at] || numbers[at] === 0) continue;
          count.found += 1;
          const isSame = own?.every((value, at) => Object.is(value, values[at])) === true;
          assert.ok(isSame, `${names}: ${String(values)} is not ${String(own)} in ${text}`);
          if (to === undefined) count.shown += compareWithInspector(each, values, text);
        }
      }
      for (const { fn } of made) reader?.forget(fn);
    }
    t.diagnostic(JSON.stringify(count));
    assert.ok(count.unset > 0 && count.shown > count.readings / 12, JSON.stringify(count));
    assert.ok(count.read > 0.99 * count.scopes, JSON.stringify(count));
    // Few may go the long way: among single variables, those that a module exports do.
    const least = (kind === 'module' ? 0.5 : 0.95) * (count.readings - count.unset);
    assert.ok(count.found > least, JSON.stringify(count));
  });
}

test('an attached debugger and running profilers change nothing', { skip }, async (t) => {
  const seeded = random(t);
  const session = new Session();
  session.connect();
  t.after(() => session.disconnect());
  for (const method of [
    'Debugger.enable',
    'Profiler.enable',
    'Profiler.start',
    'HeapProfiler.startSampling',
  ]) {
    session.post(method);
  }
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  for (let round = 0; round < 30; round += 1) {
    const { made, text } = await randomScopes(seeded, 'strict');
    for (const { fn, names, change } of made) {
      if (ownOf(fn) !== undefined) change(round);
      const [own, values] = [ownOf(fn), read(fn, names)];
      const isSame =
        own === values || own?.every((value, at) => Object.is(value, values?.[at])) === true;
      assert.ok(isSame, `${names}: ${String(values)} is not ${String(own)} in ${text}`);
    }
  }
});

test('a variable before its declaration has no value', { skip }, () => {
  const fn = (): unknown[] => [early, late];
  const early = 1;
  assert.equal(read(fn, ['early', 'late']), undefined);
  const late = 2;
  assert.deepEqual(read(fn, ['early', 'late']), [1, 2]);
});

/** Makes a function in sloppy code. */
const sloppy = (text: string): object => vm.runInThisContext(text);

/** Functions whose variables are not where their text says. */
const unreadable: Readonly<Record<string, () => readonly [fn: object, names: readonly string[]]>> =
  {
    'a name around a scope with eval': () => [
      sloppy('(() => { let x = 1; return (() => { eval("var x = 2"); return () => x; })(); })()'),
      ['x'],
    ],
    'a name around `with`': () => [
      sloppy('(() => { let x = 1; with ({ x: 2 }) { return () => x; } })()'),
      ['x'],
    ],
    'a name that there is not': () => [sloppy('(() => { let x = 1; return () => x; })()'), ['y']],
    'a global': () => [sloppy('() => process'), ['process']],
    'a native function': () => [Math.max, ['x']],
    'a bound function': () => [(() => 1).bind(undefined), ['x']],
    'a Proxy of a function': () => [new Proxy(() => 1, {}), ['x']],
    'no function': () => [{}, ['x']],
  };

for (const [what, make] of Object.entries(unreadable)) {
  test(`${what} is not read`, { skip }, () => {
    assert.equal(read(...make()), undefined);
  });
}

test('a scope with many variables is read', { skip }, () => {
  for (const count of [1, 73, 74, 75, 76, 90, 200, 1000]) {
    const names = Array.from({ length: count }, (_, at) => `v${at}`);
    const text = `(() => { ${names.map((name, at) => `let ${name} = ${at};`).join('')}
      return () => [${names}]; })()`;
    const fn: () => unknown[] = vm.runInThisContext(text);
    assert.deepEqual(read(fn, names), fn());
  }
});

// Since Node 24 V8 keeps some variables in cells of their contexts, as constants, integers or doubles (context cells).
const cellKinds: readonly (readonly [what: string, value: unknown])[] = [
  ['a small integer', 1],
  ['another one', 2],
  ['an integer of 32 bits', 2 ** 31 - 1],
  ['a larger one', 2 ** 33],
  ['a double', 0.5],
  ['another one', -0.25],
  ['minus zero', -0],
  ['no number', Number.NaN],
  ['a small integer again', 3],
  ['an object', [1]],
  ['nothing', undefined],
  ['a double again', 1.5],
];

for (let from = 0; from < cellKinds.length; from += 1) {
  const order = [...cellKinds.slice(from), ...cellKinds.slice(0, from)];
  test(`a variable in hot code has its value, beginning with ${order[0]?.[0]} (${from})`, {
    skip,
  }, () => {
    // A text of its own, so that each order meets cells without a history.
    const text = `((first) => {
      let held = first, count = 0;
      const set = (value) => { held = value; };
      const raise = () => { count += 1; return count; };
      return [() => [held, count], set, raise, ${from}];
    })`;
    const make: (first: unknown) => [() => unknown[], (value: unknown) => void, () => number] =
      vm.runInThisContext(text);
    const [fn, set, raise] = make(order[0]?.[1]);
    const number = reader?.learn(fn, ['held', 'count']);
    assert.ok(number);
    for (const [what, value] of order) {
      set(value);
      for (let call = 0; call < 5000; call += 1) {
        raise();
        if (call % 1000 !== 0) {
          fn();
          continue;
        }
        const values: unknown[] = [];
        assert.equal(reader?.read(fn, values), number);
        assert.ok(
          fn().every((each, at) => Object.is(each, values[at])),
          `${what}: ${format(values)}`,
        );
      }
    }
    reader?.forget(fn);
  });
}

test('values stay right while the collector moves them', { skip }, () => {
  const make = (at: number): (() => unknown) => {
    const [text, list] = [`text ${at}`, [at]];
    let half = at + 0.5;
    const add = (): void => {
      half += 1;
    };
    add();
    return () => [text, list, half];
  };
  const number = reader?.learn(make(0), ['text', 'list', 'half']);
  assert.ok(number);
  const kept: (() => unknown)[] = [];
  for (let at = 0; at < 200_000; at += 1) {
    const fn = make(at);
    const values: unknown[] = [];
    assert.equal(reader?.read(fn, values), number);
    if (at % 1000 === 0) kept.push(fn);
    if (values[0] !== `text ${at}` || values[2] !== at + 1.5)
      assert.fail(`${at}: ${String(values)}`);
  }
  for (const fn of kept) {
    const values: unknown[] = [];
    reader?.read(fn, values);
    assert.deepEqual(values, fn());
  }
});

test('what lies behind a ScopeInfo in memory is no part of it', { skip }, () => {
  setFlagsFromString('--expose-gc');
  setFlagsFromString('--stress-compaction');
  const collect: () => void = vm.runInNewContext('gc');
  let kept: { readonly fn: object; readonly names: readonly string[] }[] = [];
  // Compaction puts other objects behind those of the blocks: some look like the name of a function.
  for (let at = 0; at < 4000; at += 1) {
    const names = Array.from({ length: 1 + (at % 4) }, (_, index) => `v${index}`);
    const text = `{ let ${names.join(` = ${at}, `)} = ${at}; return () => [${names}, [${Array(at % 7)}]]; }`;
    const fn: object = vm.compileFunction(text)();
    kept.push({ fn, names });
    if (at % 1000 < 999) continue;
    kept = kept.filter((_, index) => index % 3 > 0);
    collect();
    for (const each of kept) {
      const values: unknown[] = [];
      assert.equal(reader?.readOnce(each.fn, each.names, values), true);
      assert.equal(values.length, each.names.length);
    }
  }
  setFlagsFromString('--no-stress-compaction');
});

test('places are found again after the collector moved what describes them', { skip }, () => {
  setFlagsFromString('--expose-gc');
  setFlagsFromString('--compact-on-every-full-gc');
  const collect: () => void = vm.runInNewContext('gc');
  // Garbage between the functions, so that a collection moves what stays.
  const made = Array.from({ length: 300 }, (_, at) => {
    const text = `((x) => { let y${at} = x; y${at} += 1; return () => [x, y${at}]; })`;
    const make: (x: number) => () => unknown[] = vm.runInThisContext(text);
    for (let turn = 0; turn < 10; turn += 1) vm.runInThisContext(`${turn} + ${text}(1)()`);
    return { make, number: reader?.learn(make(0), ['x', `y${at}`]) ?? 0 };
  });
  for (let turn = 0; turn < 5; turn += 1) {
    collect();
    for (const { make, number } of made) {
      const values: unknown[] = [];
      assert.equal(reader?.read(make(turn), values), number);
      assert.deepEqual(values, [turn, turn + 1]);
    }
  }
});

test('a function of another realm is read', { skip }, () => {
  const realm = vm.createContext();
  const fn: () => unknown[] = vm.runInContext(
    '(() => { const list = [1]; let text = "a"; text += "b"; return () => [list, text]; })()',
    realm,
  );
  assert.deepEqual(read(fn, ['list', 'text']), [...fn()]);
});
