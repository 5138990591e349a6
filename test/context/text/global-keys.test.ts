// Globals of the program under symbols, under names that are no identifiers, by other names of the global
// object, and by keys that the function computes.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import v8 from 'node:v8';
import vm from 'node:vm';
import { Peer } from '../harness.js';

const peer = new Peer();
const key = Symbol.for('manycore-test.app');
const own = Symbol('own');
const values = {
  'mck-app': { x: 1 },
  mckPlain: 'plain',
  mckCall(this: unknown, n: number) {
    return [this === globalThis, n];
  },
  7: 'seven',
  [key]: { app: 2 },
  [own]: 'own',
};
const windows = { window: globalThis, self: globalThis };

before(() => Object.assign(globalThis, values, windows));
after(() => {
  peer.close();
  for (const each of Reflect.ownKeys({ ...values, ...windows })) {
    Reflect.deleteProperty(globalThis, each);
  }
});

/** A function with the variables `around`, from its text, in plain code, as libraries are. */
function made(text: string, around: Readonly<Record<string, unknown>> = {}): () => unknown {
  const make: unknown = vm.runInThisContext(`(({${Object.keys(around).join()}}) => (${text}))`);
  assert.ok(typeof make === 'function');
  return Reflect.apply(make, undefined, [around]);
}

const captured = { key, own, odd: 'mck-app', name: 'manycore-test.app', g: globalThis };

/** Bodies of functions with the same result as at home. */
const same: Readonly<Record<string, string>> = {
  'a registered symbol': `[globalThis[Symbol.for('manycore-test.app')].app, globalThis?.[Symbol.for(\`manycore-test.app\`)].app]`,
  'symbols by a text in a variable': `[globalThis[Symbol.for(name)].app, Symbol.for(name) in g, (() => { const n = name, k = Symbol.for(n), { [Symbol.for(n)]: a, [k]: b } = globalThis; return [a.app, b.app, k in g, g[k].app] })()]`,
  'symbols in variables': `[g[key].app, globalThis[own], key in globalThis, Symbol.for('manycore-test.none') in g]`,
  'names that are no identifiers': `[globalThis['mck-app'].x, g[\`mck-app\`].x, globalThis[odd].x, globalThis[7], 7 in g]`,
  'constants of the function': `(() => { const k = Symbol.for('manycore-test.app'), o = 'mck-app'; return [g[k].app, globalThis[o].x, o in g] })()`,
  patterns: `(() => { const { [key]: { app }, 'mck-app': { x }, [Symbol.for('manycore-test.app')]: again, Array: list } = globalThis; return [app, x, again.app, list === Array] })()`,
  'calls of the language': `[Reflect.get(globalThis, key).app, Reflect.has(g, 'mck-app'), Object.hasOwn(g, key), globalThis.hasOwnProperty('mck-app'), Object.prototype.hasOwnProperty.call(globalThis, key), globalThis.hasOwnProperty('mckAbsent')]`,
  'assigned ones': `[globalThis[key] = 5, globalThis[Symbol.for('manycore-test.app')], globalThis['mck-app'] = 6, g[odd], globalThis[7] += '!', g['7']]`,
  'deleted ones': `[delete globalThis[key], key in g, delete g['mck-app'], globalThis[odd], g[key]]`,
  'an assignment that makes one': `[globalThis['mck-none'] ??= 3, globalThis['mck-none'], Reflect.deleteProperty(globalThis, 'mck-none'), 'mck-none' in globalThis]`,
  'other names of the global object': `[window.mckPlain, self['mck-app'].x, window.window.mckPlain, globalThis.self[key].app, global.globalThis.mckPlain, window === globalThis, 'mckPlain' in self]`,
  'calls by other names': `[window.mckCall(1), self?.mckCall?.(2), globalThis.window.mckCall(3)]`,
  'assignments by other names': `[window.mckPlain = 1, globalThis.mckPlain, self.window.mckPlain += 1, mckPlain, delete window.mckPlain, 'mckPlain' in self]`,
  'a choice of names': `(() => { const root = typeof window !== 'undefined' ? window : globalThis; return [root.mckPlain, (typeof mckNone === 'object' ? mckNone : self).mckPlain] })()`,
  'a choice of names, as a library makes it': `(() => {
    var freeGlobal = typeof global == 'object' && global && global.Object === Object && global;
    var freeSelf = typeof mckNone == 'object' && mckNone && mckNone.Object === Object && mckNone;
    var root = freeGlobal || freeSelf || Function('return this')();
    return [root.mckPlain, root[key].app];
  })()`,
  'the global object of a function that is made': `[Function('return this')().mckPlain, new Function("return this")()[key].app]`,
  'the head of a library': `((root, factory) => { root.mckLib = factory(root.mckPlain); const all = [root.mckLib, globalThis.mckLib]; delete root.mckLib; return all })(typeof self !== 'undefined' ? self : this, (it) => it + '!')`,
  'the head of a library with call': `(function (root) { return [root.mckPlain, root.mckCall(3)] }).call(this, typeof mckNone !== 'undefined' ? mckNone : typeof window !== 'undefined' ? window : {})`,
  'a computed key of the worker': `['Arr', 'Ob'].map((k) => globalThis[k + (k === 'Ob' ? 'ject' : 'ay')]).map((f) => f.name)`,
  'computed keys that nothing has': `['a', 'b'].map((k) => [globalThis['mckNo' + k], ('mckNo' + k) in g, delete g['mckNo' + k], globalThis['mckNo' + k]?.(1)])`,
  'a key that is an object': `(() => { let n = 0; const k = { toString() { n += 1; return 'Array' } }; return [globalThis[k] === Array, n] })()`,
  'well-known symbols': `[globalThis[Symbol.toStringTag], Symbol.iterator in globalThis, typeof globalThis.toString, globalThis.constructor.name]`,
  'the global object itself': `(() => { const f = function () { return this === globalThis }; return [f.call(globalThis), typeof globalThis, g === globalThis, [globalThis].length] })()`,
  'all but those that are named': `(() => { const { 'mck-app': a, mckPlain, mckCall, 7: seven, [key]: b, [own]: c, window: w, self: s, ...rest } = globalThis; return [a.x, 'mckPlain' in rest, typeof rest.setTimeout] })()`,
};

for (const [name, body] of Object.entries(same)) {
  test(`${name}: the same as at home`, async () => {
    const reset = (): void => void Object.assign(globalThis, values);
    const run = made(`() => ${body}`, captured);
    const home = run();
    reset();
    assert.deepEqual(await peer.run(run), home);
    reset();
  });
}

/** Bodies that reach a global of the program without its name in the text. */
const refused: Readonly<Record<string, readonly [body: string, path: string]>> = {
  'a computed key': [`['mck'].map((k) => globalThis[k + 'Plain'])`, '.mckPlain'],
  'a computed odd key': [`globalThis['mck-' + 'app'].x`, '["mck-app"]'],
  'a key of an object': [`globalThis[{ k: 'mckPlain' }.k]`, '.mckPlain'],
  'a computed symbol': [
    `globalThis[Symbol.for('manycore-test.' + 'app')]`,
    '[Symbol.for("manycore-test.app")]',
  ],
  'a symbol of the program': [`globalThis[[own][0]]`, '[Symbol(own)]'],
  'a loop': [
    `(() => { const all = []; for (const k of ['mckPlain']) all.push(g[k]); return all })()`,
    '.mckPlain',
  ],
  in: [`('mck' + 'Plain') in globalThis`, '.mckPlain'],
  'a call': [`g?.['mck' + 'Call']?.(1)`, '.mckCall'],
  'an assignment': [`globalThis['mck' + 'Plain'] = 1`, '.mckPlain'],
  'an assignment with another': [`globalThis['mck' + 'Plain'] ??= 1`, '.mckPlain'],
  delete: [`delete globalThis['mck' + 'Plain']`, '.mckPlain'],
  'a pattern': [`(() => { const { ['mck' + 'Plain']: v } = globalThis; return v })()`, '.mckPlain'],
  'a pattern with names as well': [
    `(() => { const { mckCall, ['mckPl' + 'ain']: v } = globalThis; return v })()`,
    '',
  ],
  'a computed key by another name': [
    `(typeof window !== 'undefined' ? window : globalThis)['mck' + 'Plain']`,
    '.mckPlain',
  ],
  'Reflect.get': [`Reflect.get(globalThis, 'mck' + 'Plain')`, '.mckPlain'],
  'Object.hasOwn': [`Object.hasOwn(globalThis, 'mck' + 'Plain')`, '.mckPlain'],
  'Reflect.set': [`Reflect.set(globalThis, 'mck' + 'Plain', 1)`, '.mckPlain'],
  'a descriptor': [`Object.getOwnPropertyDescriptor(globalThis, 'mckPlain').value`, '.mckPlain'],
  'a spread': [`Object.keys({ ...globalThis }).length`, ''],
  'Object.keys': [`Object.keys(g).length`, ''],
  'Reflect.ownKeys': [`Reflect.ownKeys(window).length`, ''],
  'for in': [`(() => { let n = 0; for (const k in globalThis) n += 1; return n })()`, ''],
  'the rest of a pattern': [
    `(() => { const { mckPlain, ...rest } = globalThis; return Object.keys(rest).length })()`,
    '',
  ],
  'Object.assign from it': [`Object.keys(Object.assign({}, globalThis)).length`, ''],
  'Object.assign to it': [`Object.assign(globalThis, { mckPlain: 2 })`, '.mckPlain'],
};

for (const [name, [body, path]] of Object.entries(refused)) {
  test(`${name}: a global of the program that does not travel is refused`, async () => {
    const before = Object.entries(Object.getOwnPropertyDescriptors(globalThis)).length;
    await assert.rejects(peer.run(made(`() => ${body}`, captured)), (error: unknown) => {
      assert.ok(error instanceof Error && 'code' in error);
      assert.equal(error.code, 'TRANSFER_UNSUPPORTED');
      assert.equal(error.message.split('path: ')[1], `globalThis${path}`);
      return true;
    });
    assert.equal(Object.entries(Object.getOwnPropertyDescriptors(globalThis)).length, before);
  });
}

test('a function that comes back reads the global object of home by computed keys', async () => {
  const make = made(`() => () => globalThis['mck' + 'Plain']`);
  const back = await peer.run(make);
  assert.ok(typeof back === 'function');
  assert.equal(back(), 'plain');
});

test('a computed key is refused in a class and in a function that a worker sends on', async () => {
  const read = made(`() => new (class { m() { return globalThis['mck' + 'Plain'] } })().m()`);
  await assert.rejects(peer.run(read), /mckPlain/);
  const send: unknown = made(`(f) => f()`);
  assert.ok(typeof send === 'function');
  const inner = made(`() => globalThis['mck' + 'Plain']`);
  await assert.rejects(
    peer.run((f: () => unknown) => [f].map((each) => each())[0], inner),
    /mckPlain/,
  );
});

test('a class that is in the worker already has globals that appear later', async () => {
  const own = made(
    `class { static count = 1; m() { return [typeof mckLate, globalThis.mckLater, globalThis[Symbol.for('mck.late')]] } }`,
  );
  const run = made(`() => [new own().m(), own.count]`, { own });
  const computing = made(`class { m() { return globalThis['mck' + 'Late'] } }`);
  const read = made(`() => new computing().m()`, { computing });
  assert.deepEqual(await peer.run(run), run());
  assert.equal(await peer.run(read), undefined);
  Object.assign(globalThis, { mckLate: 1, [Symbol.for('mck.late')]: 2 });
  try {
    assert.deepEqual(await peer.run(run), [['number', undefined, 2], 1]);
    await assert.rejects(peer.run(read), /mckLate/);
    Object.assign(globalThis, { mckLater: 3 });
    assert.deepEqual(await peer.run(run), [['number', 3, 2], 1]);
    await assert.rejects(peer.run(read), /mckLate/);
  } finally {
    for (const each of ['mckLate', 'mckLater', Symbol.for('mck.late')]) {
      Reflect.deleteProperty(globalThis, each);
    }
  }
  assert.equal(await peer.run(read), undefined);
});

test('a global under a symbol that cannot travel is refused with its name, or of the worker', async () => {
  const weak = Symbol.for('manycore-test.weak');
  Object.assign(globalThis, { [weak]: new WeakMap() });
  try {
    const read = made(`() => globalThis[Symbol.for('manycore-test.weak')]`);
    await assert.rejects(
      peer.run(read),
      /path: .* → globalThis\[Symbol\.for\("manycore-test\.weak"\)\]/,
    );
    const make = made(
      `() => { globalThis[weak] ??= 'made'; return [globalThis[weak], globalThis[[weak][0]]] }`,
      { weak },
    );
    assert.deepEqual(await peer.run(make), ['made', 'made']);
  } finally {
    Reflect.deleteProperty(globalThis, weak);
  }
});

test('`gc` of V8 is that of the worker', async () => {
  v8.setFlagsFromString('--expose-gc');
  Object.assign(globalThis, { gc: vm.runInNewContext('gc') });
  const exposed = new Peer(['--expose-gc']);
  try {
    const read = made(`() => [typeof gc, gc(), typeof globalThis['g' + 'c']]`);
    assert.deepEqual(await exposed.run(read), ['function', undefined, 'function']);
  } finally {
    exposed.close();
    Reflect.deleteProperty(globalThis, 'gc');
  }
});

test('a captured variable with a name of the global object is not the global object', async () => {
  for (const name of ['global', 'window', 'self']) {
    const of = { mckPlain: 5, 'mck-app': 6 };
    const run = made(`() => [${name}.mckPlain, ${name}['mck-' + 'app']]`, { [name]: of });
    assert.deepEqual(await peer.run(run), [5, 6]);
  }
});

test('`self` that is no global object is a global like others', async () => {
  Object.assign(globalThis, { self: { mckPlain: 'other', location: 'here' } });
  try {
    const run = made(
      `() => { const root = typeof self !== 'undefined' ? self : globalThis; return [root.mckPlain, self.location, globalThis.self.location, self['mck' + 'Plain']] }`,
    );
    assert.deepEqual(await peer.run(run), ['other', 'here', 'here', 'other']);
  } finally {
    Object.assign(globalThis, { self: globalThis });
  }
});

test('a global that appears after the first call is refused, too', async () => {
  const names = Reflect.ownKeys({ ...values, ...windows });
  for (const each of names) Reflect.deleteProperty(globalThis, each);
  const run = made(`() => globalThis['mck' + 'Plain']`);
  const late = made(`() => globalThis[Symbol.for('manycore-test.app')]`);
  try {
    for (const each of [run, late]) assert.equal(await peer.run(each), undefined);
  } finally {
    Object.assign(globalThis, values, windows);
  }
  await assert.rejects(peer.run(run), /mckPlain/);
  assert.deepEqual(await peer.run(late), { app: 2 });
});

test('a library that was captured by value works', async () => {
  const exports: Record<string, unknown> = {};
  const head = `(function (root, factory) {
    if (typeof mckDefine === 'function' && mckDefine.amd) mckDefine([], factory);
    else if (typeof exports === 'object') exports.lib = factory(root);
    else root.lib = factory(root);
  })(typeof self !== 'undefined' ? self : this, function (root) {
    'use strict';
    var version = root.mckPlain;
    function has(name) { return typeof root[name] === 'function'; }
    return { version: function () { return [version, root.mckPlain, root['mck-app'].x, has('Map'), has('mckNo')]; } };
  })`;
  Reflect.apply(vm.compileFunction(head, ['exports']), undefined, [exports]);
  const { lib } = exports;
  assert.ok(typeof lib === 'object' && lib !== null && 'version' in lib);
  const version: unknown = lib.version;
  assert.ok(typeof version === 'function');
  const run = (): unknown => Reflect.apply(version, undefined, []);
  assert.deepEqual(await peer.run(run), ['plain', 'plain', 1, true, false]);
});
