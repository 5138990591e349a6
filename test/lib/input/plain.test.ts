import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { hasPrivateMembers, isPlainRecord, isSameClass, modelOf } from '../../../src/lib/index.js';

test('objects of the same keys, in the same order and with the same attributes, are of one class', () => {
  assert.equal(isSameClass({ a: 1, b: 'x' }, { a: 2, b: 'y' }), true);
  assert.equal(isSameClass({ a: 1, b: 'x' }, { b: 'y', a: 2 }), false);
  assert.equal(isSameClass({ a: 1 }, Object.freeze({ a: 1 })), false);
  assert.equal(
    isSameClass(
      { a: 1 },
      {
        get a() {
          return 1;
        },
      },
    ),
    false,
  );
  assert.equal(isSameClass({ a: 1 }, new Proxy({ a: 1 }, {})), false);
  assert.equal(isSameClass([1], Object.assign([1], { name: 1 })), false);
});

test('objects in dictionary mode, which share a class, are of none', () => {
  const bare: object = Object.create(null);
  assert.equal(isSameClass(bare, bare), false);
});

test('a model is like the object, holds nothing of it, and is found again', () => {
  const held = { large: true };
  const record = { held, text: 'secret', count: 1 };
  const model = modelOf(record, 7);
  assert.ok(model !== undefined && model !== record);
  assert.equal(Object.values(model).includes(held), false);
  assert.equal(Object.values(model).includes('secret'), false);
  assert.equal(modelOf({ held, text: 'another', count: 2 }, 7), model);
  assert.equal(modelOf(Object.freeze({ held, text: '', count: 2 }), 7), undefined);
  assert.equal(isPlainRecord(record), true);
});

test('a model is made without calling toJSON', () => {
  const record = { toJSON: () => assert.fail('it was called') };
  assert.equal(modelOf(record, 8), undefined);
});

test('private members are seen, fields and methods, and nothing else is', () => {
  class Field {
    readonly #n = 1;
    get n(): number {
      return this.#n;
    }
  }
  class Method {
    run(): number {
      return this.#run();
    }
    #run(): number {
      return 1;
    }
  }
  for (const value of [new Field(), new Method(), Object.setPrototypeOf(new Field(), null)]) {
    assert.equal(hasPrivateMembers(value), true);
    assert.equal(isPlainRecord(value), false);
  }
  const others = [
    {},
    { '#n': 1, [Symbol.iterator]: 1 },
    new Error('a'),
    Field,
    Field.prototype,
    [1],
  ];
  for (const value of others) assert.equal(hasPrivateMembers(value), false);
});

test('comparing goes on after V8 dropped the code of the comparison, and leaves no flag set', () => {
  const index = new URL('../../../src/lib/index.js', import.meta.url).href;
  const script = `
    import { hasPrivateMembers, isSameClass } from ${JSON.stringify(index)};
    import { setImmediate } from 'node:timers/promises';
    for (let round = 0; round < 20; round += 1) { gc(); await setImmediate(); }
    if (!isSameClass({ a: 1 }, { a: 2 })) throw new Error('not the same class any more');
    if (!hasPrivateMembers(new (class { #n = 1; n() { return this.#n; } })())) throw new Error('none');
    try { new Function('return %HaveSameMap({}, {})'); } catch { process.exit(0); }
    throw new Error('the flag is still set');`;
  const flags = ['--expose-gc', '--flush-bytecode', '--stress-flush-code'];
  const { status, stderr } = spawnSync(
    process.execPath,
    [...flags, '--input-type=module', '-e', script],
    { encoding: 'utf8' },
  );
  assert.equal(status, 0, stderr);
});

test('no tag of an object is read that has one of its own', () => {
  const tagged = {
    get [Symbol.toStringTag](): string {
      throw new Error('read');
    },
  };
  assert.equal(isPlainRecord(tagged), false);
});
