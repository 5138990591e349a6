// Captured variables, read natively: against the program's own answer and the inspector; and functions that must
// not be read so.

import assert from 'node:assert/strict';
import { Session } from 'node:inspector';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import vm from 'node:vm';
import {
  closureReader,
  closureReaderProblem,
} from '../../../src/context/closures/closure-reader.js';
import { inspectSelf } from '../../../src/context/closures/inspector.js';
import { nativeBinding } from '../../../src/native.js';
import { random } from '../../support/index.js';
import { randomScopes } from './random-scopes.js';

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

/** Programs, each with some fifty functions and values: `MANYCORE_ROUNDS=20000` for a million. */
const rounds = Number(process.env['MANYCORE_ROUNDS'] ?? 300);

test('functions in random scopes have what the program itself sees', { skip }, (t) => {
  const seeded = random(t);
  let count = 0;
  let found = 0;
  for (let round = 0; round < rounds; round += 1) {
    const { made, text } = randomScopes(seeded);
    for (const { fn, names, change } of made) {
      for (const to of [undefined, 1, 2 ** 33, 0.5, 'text', [1]]) {
        if (to !== undefined) change(to);
        count += 1;
        const values = read(fn, names);
        if (values === undefined) continue;
        found += 1;
        const own = fn();
        const isSame = own.every((value, at) => Object.is(value, values[at]));
        assert.ok(isSame, `${names}: ${String(values)} is not ${String(own)} in ${text}`);
      }
    }
  }
  assert.ok(count > rounds, String(count));
  // Few may go the long way.
  assert.ok(found > count * 0.95, `${found} of ${count}`);
});

test('the inspector shows the same, without names of functions around', { skip }, (t) => {
  const seeded = random(t);
  for (let round = 0; round < 20; round += 1) {
    const { made, text } = randomScopes(seeded);
    for (const { fn, names } of made) {
      const values = read(fn, names);
      if (values === undefined) continue;
      const { scopes } = inspectSelf().capture(fn);
      for (const [at, name] of names.entries()) {
        // V8 lists neither `this` nor the name that a function expression gives itself.
        if (name === 'this' || text.includes(`(function ${name}(`)) continue;
        const scope = scopes.find((each) => Object.hasOwn(each, name));
        assert.ok(scope !== undefined && Object.is(Reflect.get(scope, name), values[at]), name);
      }
    }
  }
});

test('an attached debugger and running profilers change nothing', { skip }, (t) => {
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
    const { made, text } = randomScopes(seeded);
    for (const { fn, names, change } of made) {
      change(round);
      const values = read(fn, names);
      const own = fn();
      const isSame = own.every((value, at) => Object.is(value, values?.[at]));
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
