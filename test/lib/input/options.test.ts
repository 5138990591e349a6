// A table of readers: names, defaults, checks, and programs that have changed Object.prototype.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  booleanOption,
  choiceOption,
  functionOption,
  integerOption,
  numberOption,
  type Readers,
  readGiven,
  readOptions,
} from '../../../src/lib/index.js';
import { hasCode } from '../../../src/public.js';

interface Options {
  readonly size?: number | undefined;
  readonly limit?: number | undefined;
  readonly kind?: 'plain' | 'fancy' | undefined;
  readonly isFast?: boolean | undefined;
  readonly onEnd?: (() => void) | undefined;
  readonly twice?: number | undefined;
}

const size = integerOption(2, 1, 9);
const readers = {
  size,
  limit: numberOption(Infinity, 0),
  kind: choiceOption(['plain', 'fancy']),
  isFast: booleanOption(true),
  onEnd: functionOption<() => void>,
  twice: (name, value, given) => 2 * (value ?? size(name, given.size)),
} satisfies Readers<Options>;

const defaults = {
  size: 2,
  limit: Infinity,
  kind: 'plain',
  isFast: true,
  onEnd: undefined,
  twice: 4,
};

test('missing options have their defaults, undefined ones too', () => {
  assert.deepEqual(readOptions('the options', {}, readers), defaults);
  const none = Object.fromEntries(Object.keys(readers).map((name) => [name, undefined]));
  assert.deepEqual(readOptions('the options', none, readers), defaults);
});

test('given options are read, and readers get the other options', () => {
  const onEnd = () => {};
  const given: Options = { size: 9, limit: 0, kind: 'fancy', isFast: false, onEnd };
  assert.deepEqual(readOptions('the options', given, readers), { ...given, twice: 18 });
});

for (const [wrong, message] of [
  [{ size: 10 }, 'size is 10: it must be an integer from 1 to 9'],
  [{ size: '3' }, 'size is "3": it must be an integer from 1 to 9'],
  [{ limit: -1 }, 'limit is -1: it must be a number from 0 on'],
  [{ kind: 'odd' }, 'kind is "odd": it must be "plain" or "fancy"'],
  [{ isFast: 1 }, 'isFast is 1: it must be true or false'],
  [{ onEnd: 'x' }, 'onEnd is "x": it must be a function'],
  [{ onend: 1 }, 'there is no "onend" in the options: there may be size, limit'],
  [null, 'the options must be an object, not null'],
  [[], 'the options must be an object, not an array'],
] as const) {
  test(`refused: ${message}`, () => {
    assert.throws(
      () => Reflect.apply(readOptions, undefined, ['the options', wrong, readers]),
      (error) => hasCode(error, 'OPTION_INVALID') && error.message.startsWith(message),
    );
  });
}

/** Readers whose defaults do not depend on other options. */
const { twice: _, ...plainReaders } = readers;
const plainDefaults = Object.freeze({ ...readOptions('the options', {}, plainReaders), more: 1 });

test('readGiven has the defaults for what is missing, and leaves them as they are', () => {
  const onEnd = () => {};
  const cases: Omit<Options, 'twice'>[] = [
    {},
    { size: undefined },
    { size: 9 },
    { limit: 0, kind: 'fancy', onEnd },
  ];
  for (const given of cases) {
    const read = readGiven('the options', given, plainReaders, plainDefaults);
    const wanted = { ...readOptions('the options', given, plainReaders), more: 1 };
    assert.deepEqual(read, wanted);
    assert.ok(!Object.isFrozen(read) && plainDefaults.size === 2);
  }
});

test('readGiven refuses as readOptions does', () => {
  for (const wrong of [{ size: 10 }, { kind: 'odd' }, { onend: 1 }, { more: 2 }, null, [], 5]) {
    assert.throws(
      () =>
        Reflect.apply(readGiven, undefined, ['the options', wrong, plainReaders, plainDefaults]),
      { code: 'OPTION_INVALID' },
    );
  }
});

test('nothing is read from Object.prototype, and no setter on it is called', (t) => {
  let calls = 0;
  t.after(() => {
    for (const name of ['size', 'kind']) Reflect.deleteProperty(Object.prototype, name);
  });
  Object.defineProperty(Object.prototype, 'size', { value: 7, configurable: true });
  Object.defineProperty(Object.prototype, 'kind', {
    get: () => 'fancy',
    set: () => {
      calls += 1;
    },
    configurable: true,
  });
  const read = readOptions('the options', {}, readers);
  assert.equal(calls, 0);
  assert.deepEqual({ ...read }, defaults);
  assert.ok(Object.hasOwn(read, 'size') && Object.hasOwn(read, 'kind'));
  const plain: Omit<Options, 'twice'> = { kind: 'plain' };
  const given = readGiven('the options', plain, plainReaders, plainDefaults);
  assert.equal(calls, 0);
  assert.deepEqual({ ...given }, { ...plainDefaults });
});
