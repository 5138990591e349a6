// A value that a task made and returned belongs to the caller. After a change at home it has that state in
// each worker, also in its maker. It comes back as the caller's own. Programs are random; `MANYCORE_RUNS=n`
// makes that many.

// biome-ignore-all lint/complexity/noStaticOnlyClass: statics are a subject

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { createExporter, createImporter, type Exporter } from '../../../src/context/index.js';
import { hasCode } from '../../../src/errors.js';
import { type Random, random, seeded } from '../../support/index.js';
import { defineAll, Peer, unsent } from '../harness.js';

const maker = new Peer();
const other = new Peer();
const peers = [maker, other] as const;
after(() => {
  for (const each of peers) each.close();
});

test('a static, a property and a variable that were changed at home are changed where they were made', async () => {
  const made = await maker.run(() => {
    let total = 1;
    const counted: { (): unknown; count?: number } = () => counted.count;
    counted.count = 1;
    return {
      Counter: class Counter {
        static n = 1;
      },
      counted,
      add: (by: number) => {
        total += by;
        return total;
      },
    };
  });
  made.Counter.n = 2;
  made.counted.count = 2;
  made.add(1);
  const probe = () => [made.Counter.n, made.counted(), made.add(0)];
  for (const peer of [maker, maker, other, other])
    assert.deepEqual(await peer.run(probe), [2, 2, 2]);
});

test('a value made in a worker is one object at home, whichever worker sends it', async () => {
  const made = await maker.run(() => {
    const state = { n: 0 };
    return {
      Shape: class Shape {},
      fn: () => state,
      bound: Math.max.bind(null, 1),
      symbol: Symbol('made'),
      plain: () => 1,
    };
  });
  for (const peer of peers) {
    const back = await peer.run((values) => ({ ...values, shape: new values.Shape() }), made);
    for (const key of ['Shape', 'fn', 'bound', 'symbol', 'plain'] as const) {
      assert.equal(back[key], made[key], key);
    }
    assert.ok(back.shape instanceof made.Shape);
  }
});

/** A second loop, on the bus: a sending and a receiving half of its own. */
function loop() {
  const exporter = createExporter();
  const importer = createImporter({ exporter });
  const sent = new Set<number>();
  return {
    exporter,
    async take(value: unknown, sender: Exporter): Promise<unknown> {
      const { bytes, definitions } = sender.exportValue(value, 'the message');
      await defineAll(importer, unsent(sender, sent, definitions));
      return importer.importValue(bytes);
    },
  };
}

test('another loop sends back a value made in a worker of this loop as itself', async () => {
  const made = await maker.run(() => ({
    Shape: class Shape {
      static n = 1;
    },
    bound: Math.max.bind(null, 1),
    fn: Object.assign(() => 1, { n: 1 }),
  }));
  made.Shape.n = 2;
  made.fn.n = 2;
  const [here, there] = [loop(), loop()];
  const seen = await there.take(made, here.exporter);
  assert.deepEqual(
    seen instanceof Object && [Reflect.get(seen, 'Shape').n, Reflect.get(seen, 'fn').n],
    [2, 2],
  );
  const back = await here.take(seen, there.exporter);
  for (const key of ['Shape', 'bound', 'fn'] as const)
    assert.equal(Reflect.get(Object(back), key), made[key], key);
});

test('code without captures is the same object where it was made', async () => {
  const made = await maker.run(() => {
    class Base {}
    const own = { Base, Sub: class Sub extends Base {}, fn: () => 1, symbol: Symbol('made') };
    Reflect.set(globalThis, 'ownOfMaker', own);
    return { ...own, sub: new own.Sub() };
  });
  const isSame = ({ sub, ...values }: typeof made) => {
    const own = Reflect.get(globalThis, 'ownOfMaker');
    return [
      ...Object.entries(values).map(([key, value]) => value === own[key]),
      sub instanceof own.Base,
    ];
  };
  assert.deepEqual(await maker.run(isSame, made), [true, true, true, true, true]);
  // The base class is no longer the one of the worker, so neither is the class.
  Reflect.set(made.Base, 'extra', 1);
  const seen = ({ Sub }: typeof made) => Reflect.get(Sub, 'extra');
  for (const peer of [maker, maker, other]) assert.equal(await peer.run(seen, made), 1);
  // The same holds for a function to which the worker has added something.
  const added = await maker.run(() => {
    const fn = () => 1;
    Reflect.set(globalThis, 'added', fn);
    return fn;
  });
  await maker.run(() => Reflect.set(Reflect.get(globalThis, 'added'), 'extra', 1));
  for (const peer of peers)
    assert.equal(await peer.run((fn) => Reflect.get(fn, 'extra'), added), undefined);
});

/** Text that makes something in a task, a change of it at home, and a test of its visible state. */
const kinds = [
  {
    make: `class X { static n = 1; static list = [1]; m() { return X.n } static get all() { return [this.n, X.list] } }`,
    changes: [
      'v.n = R',
      'v.list.push(R)',
      'v.prototype.m = () => R',
      'v.extra = R',
      'delete v.n',
      'Object.freeze(v)',
    ],
    see: '[v.n, v.list, v.extra, v.all, new v().m(), Object.isFrozen(v), Object.keys(v)]',
  },
  {
    make: `let k = 1; class X { static #p = { k: 1 }; static set(x) { k = x; X.#p = { k } } static get() { return [k, X.#p] } }`,
    changes: ['v.set(R)', 'v.get()[1].k = R', 'v.extra = R'],
    see: '[v.get(), v.extra, v.name]',
  },
  {
    make: `class B { static n = 1; who() { return B.n } } class X extends B { who() { return [super.who(), super.constructor.n] } }`,
    changes: [
      'Object.getPrototypeOf(v).n = R',
      'Object.getPrototypeOf(v.prototype).who = () => R',
      'v.n = R',
    ],
    see: '[v.n, new v().who(), Object.getPrototypeOf(v).n]',
  },
  {
    make: `const X = () => X.count; X.count = 1`,
    changes: [
      'v.count = R',
      'v.more = [R]',
      'delete v.count',
      "Object.defineProperty(v, 'name', { value: 'n' + R })",
    ],
    see: '[v(), v.count, v.more, v.name]',
  },
  {
    make: `let n = 1; const own = []; const X = { up: (by) => own.push(n += by), get: () => [n, own] }`,
    changes: ['v.up(R)', 'v.get = () => R', 'v.own = R'],
    see: '[v.get(), v.own]',
  },
  {
    make: `const o = { n: 1 }; const X = (function (by) { return this.n += by ?? 0 }).bind(o)`,
    changes: ['v(R)', 'v.extra = R', "Object.defineProperty(v, 'length', { value: R })"],
    see: '[v(), v.extra, v.length, v.name]',
  },
  {
    make: `function X() {} X.prototype.m = () => 1; X.n = 1`,
    changes: ['v.prototype.m = () => R', 'v.n = R', 'v.prototype.more = R'],
    see: '[v.n, new v().m(), new v().more]',
  },
  {
    make: `const m = new Map([[1, 1]]); const X = function* () { yield* m; yield X.n }; X.set = (n) => m.set(n, n)`,
    changes: ['v.set(R)', 'v.n = R', 'v.prototype.m = R'],
    see: '[...v(), v().m]',
  },
];

/** A function without parameters that returns `{ make, steps }`. */
function program(chance: Random): string {
  const chosen = Array.from({ length: chance.integer(1, 3) }, () => chance.pick(kinds));
  const made = chosen.map(({ make }) => `(() => { ${make}; return X })()`);
  const step = (): string => {
    const at = chance.integer(0, chosen.length);
    const change = chance.pick(chosen[at]?.changes ?? []);
    return `() => { const v = all[${at}]; ${change.replaceAll('R', String(chance.integer(2, 9)))} }`;
  };
  const steps = Array.from({ length: chance.integer(1, 4) }, step);
  const seen = chosen.map(({ see }, at) => `(() => { const v = all[${at}]; return ${see} })()`);
  return `{
  make: () => [${made.join()}],
  steps: (all) => [${steps.join()}],
  captured: (all) => () => JSON.stringify([${seen.join()}]),
  given: (all) => JSON.stringify([${seen.join()}]),
}`;
}

interface Program {
  make(): unknown[];
  steps(all: unknown[]): (() => void)[];
  captured(all: unknown[]): () => unknown;
  given(all: unknown[]): unknown;
}

test('random values made in a worker and changed at home are the same everywhere', async (t) => {
  const { seed } = random(t);
  const runs = Number(process.env['MANYCORE_RUNS'] ?? 10);
  const texts = Array.from({ length: runs }, (_, at) => program(seeded(seed + at)));
  // A file: in the worker, the scopes of code are read from it.
  const folder = mkdtempSync(join(tmpdir(), 'made-there-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'programs.mjs');
  writeFileSync(file, `export const programs = [${texts.join(',\n')}];`);
  const { programs }: { programs: Program[] } = await import(pathToFileURL(file).href);
  let refused = 0;
  for (const [at, { make, steps, captured, given }] of programs.entries()) {
    const where = `MANYCORE_RUNS=1 MANYCORE_SEED=${seed + at}\n${texts[at]}`;
    const all = await maker.run(make);
    for (const step of [() => {}, ...steps(all)]) {
      try {
        step();
      } catch {} // it is frozen by now
      const home = given(all);
      for (const peer of [maker, maker, other, other]) {
        try {
          assert.equal(await peer.run(captured(all)), home, where);
          assert.equal(await peer.run(given, all), home, where);
          const back = await peer.run((values) => values, all);
          assert.ok(
            back.every((value, index) => typeof value !== 'function' || value === all[index]),
            where,
          );
        } catch (error) {
          if (!hasCode(error, 'TRANSFER_SHARED_VARIABLE')) throw error;
          refused += 1;
        }
      }
    }
  }
  t.diagnostic(`${refused} calls were refused`);
  assert.ok(refused < runs);
});
