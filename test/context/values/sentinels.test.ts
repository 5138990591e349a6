// Symbols, frozen objects and functions that modules export: in a worker they are those of the module there,
// and results are those of the caller. A value that can change is a copy.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { after, test } from 'node:test';
import { Peer } from '../harness.js';
import * as all from './sentinel-values.js';
import {
  blue,
  dark,
  isBlue,
  isRed,
  Kind,
  noop,
  red,
  settings,
  shallow,
  start,
  state,
} from './sentinel-values.js';

const peer = new Peer();
after(() => peer.close());

const here = { red, blue, dark, noop, Kind };

/** Tests of a value: is it the one that its module has? */
const checks: Readonly<Record<keyof typeof here, (value: unknown) => unknown>> = {
  red: (value) => [value === red, value === all.red],
  blue: (value) => [value === blue, value === all.blue],
  dark: (value) => [value === dark, value === all.dark],
  noop: (value) => [value === noop, value === all.noop],
  Kind: (value) => [value === Kind, value === all.Kind],
};
const gives: Readonly<Record<keyof typeof here, () => unknown>> = {
  red: () => red,
  blue: () => blue,
  dark: () => all.dark,
  noop: () => noop,
  Kind: () => all.Kind,
};

for (const name of ['red', 'blue', 'dark', 'noop', 'Kind'] as const) {
  test(`${name}: an import is itself as an argument and as a result`, async () => {
    assert.deepEqual(await peer.run(checks[name], here[name]), [true, true]);
    const inside = [{ deep: new Map([[1, here[name]]]) }];
    const check = checks[name];
    const deep = (list: typeof inside) => check(list[0]?.deep.get(1));
    assert.deepEqual(await peer.run(deep, inside), [true, true]);
    assert.equal(await peer.run(gives[name]), here[name]);
    const give = gives[name];
    const [{ found }] = await peer.run(() => [{ found: give() }] as const);
    assert.equal(found, here[name]);
  });
}

test('another export of a module whose function is imported stays itself', async () => {
  assert.equal(await peer.run((value: unknown) => isRed(value), red), true);
  assert.deepEqual(
    await peer.run((some: unknown[]) => some.map((each) => isBlue(each)), [blue, {}]),
    [true, false],
  );
});

test('an error carries such values', async () => {
  const fail = () => {
    throw Object.assign(new Error('with a kind'), { kind: red, of: blue });
  };
  await assert.rejects(peer.run(fail), (error: Error & { kind?: unknown; of?: unknown }) => {
    return error.kind === red && error.of === blue;
  });
});

test('a frozen object that differs in the worker is a copy', async () => {
  assert.equal(
    await peer.run((value: typeof start) => [value.at, start.at].length && value.at, start),
    start.at,
  );
  all.increase();
  assert.deepEqual(await peer.run((value: typeof state) => [value, state], state), [
    { count: 1 },
    { count: 0 },
  ]);
});

test('a value that can change is a copy with the contents of its caller', async () => {
  settings.level = 2;
  const read = (value: typeof settings) => [value.level, settings.level, value === settings];
  assert.deepEqual(await peer.run(read, settings), [2, 1, false]);
  shallow.list.push(2);
  const list = (value: typeof shallow) => [value.list.length, shallow.list.length];
  assert.deepEqual(await peer.run(list, shallow), [2, 1]);
});

test('exports of CommonJS are the same', async () => {
  const cjs = createRequire(import.meta.url)('../../../../test/context/fixtures/sentinels.cjs');
  const { red: own, blue: frozen, noop: none } = cjs;
  const check = (a: unknown, b: unknown, c: unknown) => [
    cjs.isRed(a),
    cjs.isBlue(b),
    cjs.noop === c,
    cjs.isRed(own),
    cjs.isBlue(frozen),
  ];
  assert.deepEqual(await peer.run(check, own, frozen, none), [true, true, true, true, true]);
  assert.deepEqual(await peer.run(() => cjs.red), own);
  assert.equal(await peer.run(() => cjs.blue), frozen);
});
