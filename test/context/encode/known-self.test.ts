// Arrows of known code that use `this`: written from what was learnt, with the results, and refusals, of the long way.
// Long (over 400 lines): each way in which an object may differ from the one that was learnt is a case.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { inspect } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import vm from 'node:vm';
import { CodedError } from '../../../src/errors.js';
import { withoutNativeCapture } from '../../support/closures.js';
import { random, waitFor } from '../../support/index.js';
import { type Call, makePair } from './halves.js';

const skip = withoutNativeCapture();
/** Turns after which code is known. */
const rounds = 12;

type Pair = ReturnType<typeof makePair>;

const double = (of: number): number => of * 2;

class Shape {
  label = 'shape';
  named(): string {
    return `${this.label} of ${this.constructor.name}`;
  }
}

class Lamp extends Shape {
  static rate = 3;
  static dark = (): Lamp => new Lamp(0);
  watts: number;
  tags: unknown = ['a', { deep: new Map([[1, new Date(5)]]) }];
  constructor(watts: number) {
    super();
    this.watts = watts;
  }
  get twice(): number {
    return double(this.watts);
  }
  cost(hours: number): number {
    return this.watts * hours;
  }
  ofWatts = 1;
  made(): Readonly<Record<string, Call>> {
    const file = `/shop/${this.watts}.js`;
    let count = this.watts;
    count += 1;
    return {
      'a property': () => this.watts,
      'nested objects': () => this.tags,
      'a method': (hours: number) => this.cost(hours),
      'methods above': () => this.named(),
      'an accessor': () => this.twice,
      'a variable': () => [this.watts, count],
      'an import': () => basename(file) + this.watts,
      'a function that it calls': () => double(this.watts),
      'the object itself': () => this,
      'the class': () => [this instanceof Lamp, this.constructor === Lamp, Lamp.rate],
      'two arrows of one object': () => [() => this].map((inner) => inner() === this),
    };
  }
}

const kinds = Object.keys(new Lamp(1).made());

function arrowOf(lamp: Lamp, kind: string): Call {
  const made = lamp.made()[kind];
  assert.ok(made);
  return made;
}

function isQuick({ exporter }: Pair, fn: Call): boolean {
  return exporter.exportFunction(fn).isSteady !== undefined;
}

async function isRight(pair: Pair, fn: Call, why = ''): Promise<void> {
  assert.equal(shown(await pair.call(fn, 2)), shown(Reflect.apply(fn, undefined, [2])), why);
}

for (const kind of kinds) {
  test(`an arrow that uses ${kind} of its this is known, and right in each turn`, {
    skip,
  }, async () => {
    const pair = makePair();
    for (let turn = 0; turn < rounds; turn += 1) {
      await isRight(pair, arrowOf(new Lamp(turn), kind));
    }
    const { definitions } = pair;
    const lamp = new Lamp(100);
    const fn = arrowOf(lamp, kind);
    for (let turn = 0; turn < rounds; turn += 1) {
      lamp.watts = turn;
      lamp.tags = { turn, list: [turn] };
      assert.ok(isQuick(pair, fn), 'the long way');
      await isRight(pair, fn);
    }
    assert.equal(pair.definitions, definitions);
  });
}

/** A pair that knows the code of an arrow. */
async function known(kind: string): Promise<Pair> {
  const pair = makePair();
  for (let turn = 0; turn < rounds; turn += 1) await pair.call(arrowOf(new Lamp(turn), kind), 1);
  assert.ok(isQuick(pair, arrowOf(new Lamp(1), kind)));
  return pair;
}

/** The result of a call as text, since its classes are copies; or what it throws. */
async function outcome(pair: Pair, fn: Call, ...args: unknown[]): Promise<string> {
  try {
    return shown(await pair.call(fn, ...args));
  } catch (error) {
    return error instanceof CodedError ? error.code : String(error);
  }
}

function shown(value: unknown): string {
  return inspect(value, { showHidden: true, depth: 9 });
}

class Stamped extends Shape {
  readonly #secret = 1;
  static on(value: object): void {
    class Returns {
      constructor() {
        // biome-ignore lint/correctness/noConstructorReturn: a stamp on any object
        return value;
      }
    }
    class Stamps extends Returns {
      #stamp = 1;
      static read = (of: Stamps) => of.#stamp;
    }
    assert.equal(Stamps.read(new Stamps()), 1);
  }
  get secret(): number {
    return this.#secret;
  }
}

/** Changes of an object after which it is not what was learnt. */
const changes: Readonly<Record<string, (lamp: Lamp) => object>> = {
  'one more property': (lamp) => Object.assign(lamp, { more: 1 }),
  'one property less': (lamp) => {
    Reflect.deleteProperty(lamp, 'label');
    return lamp;
  },
  'properties in another order': (lamp) => {
    const { label } = lamp;
    Reflect.deleteProperty(lamp, 'label');
    lamp.label = label;
    return lamp;
  },
  'a function in a property': (lamp) => Object.assign(lamp, { tags: () => 1 }),
  'an instance in a property': (lamp) => Object.assign(lamp, { tags: new Shape() }),
  'itself in a property': (lamp) => Object.assign(lamp, { tags: lamp }),
  'itself deep in a property': (lamp) => Object.assign(lamp, { tags: [{ of: lamp }] }),
  'a symbol in a property': (lamp) => Object.assign(lamp, { tags: Symbol.iterator }),
  'a key that is a symbol': (lamp) => Object.assign(lamp, { [Symbol.for('key')]: 1 }),
  'a getter': (lamp) => Object.defineProperty(lamp, 'watts', { get: () => 7 }),
  'a property that is read only': (lamp) =>
    Object.defineProperty(lamp, 'watts', { writable: false }),
  'a property that is not listed': (lamp) =>
    Object.defineProperty(lamp, 'watts', { enumerable: false }),
  'a frozen object': (lamp) => Object.freeze(lamp),
  'an object that takes no more properties': (lamp) => Object.preventExtensions(lamp),
  'a sealed object': (lamp) => Object.seal(lamp),
  'an object of another class': (lamp) => Object.setPrototypeOf(lamp, Shape.prototype),
  'an object without a prototype': (lamp) => Object.setPrototypeOf(lamp, null),
  'a constructor of its own': (lamp) => Object.assign(lamp, { constructor: Shape }),
  'a private member': (lamp) => {
    Stamped.on(lamp);
    return lamp;
  },
  'a Proxy': (lamp) => new Proxy(lamp, {}),
  'an object that sends itself': (lamp) =>
    Object.assign(lamp, { [Symbol.for('manycore.send')]: () => 1 }),
};

for (const [what, change] of Object.entries(changes)) {
  test(`an arrow whose this has become ${what} goes the long way`, { skip }, async () => {
    for (const kind of kinds) {
      const pair = await known(kind);
      const lamp = new Lamp(4);
      const given = change(lamp);
      const changed = Reflect.apply(Lamp.prototype.made, given, [])[kind];
      assert.ok(changed);
      assert.ok(!isQuickOrRefused(pair, changed), kind);
      assert.equal(await outcome(pair, changed, 2), await outcome(makePair(), changed, 2), kind);
      await isRight(pair, arrowOf(new Lamp(5), kind), kind); // others of its class are as they were
    }
  });
}

function isQuickOrRefused(pair: Pair, fn: Call): boolean {
  try {
    return isQuick(pair, fn);
  } catch {
    return false;
  }
}

/** Values of `this` that are no instances. */
const others: readonly unknown[] = [undefined, null, 1, 'text', [1], { watts: 1 }, new Map(), Lamp];

test('an arrow whose this is no instance goes the long way', { skip }, async () => {
  function made(this: unknown): Call {
    return () => this;
  }
  for (const other of others) {
    const pair = makePair();
    for (let turn = 0; turn < rounds; turn += 1) {
      await pair.call(Reflect.apply(made, new Lamp(turn), []));
    }
    const fn: Call = Reflect.apply(made, other, []);
    assert.equal(await outcome(pair, fn), await outcome(makePair(), fn), String(other));
  }
});

/** Changes of the classes, each with what takes it back. */
const ofClasses: Readonly<Record<string, () => () => void>> = {
  'a method': () => {
    const { cost } = Lamp.prototype;
    Lamp.prototype.cost = (hours) => hours + 1000;
    return () => Object.assign(Lamp.prototype, { cost });
  },
  'a method above': () => {
    const { named } = Shape.prototype;
    Shape.prototype.named = () => 'changed';
    return () => Object.assign(Shape.prototype, { named });
  },
  'a static property': () => {
    Lamp.rate = 4;
    return () => {
      Lamp.rate = 3;
    };
  },
};

for (const [what, change] of Object.entries(ofClasses)) {
  test(`${what} that changes is as it is now`, { skip }, async () => {
    for (const kind of kinds) {
      const pair = await known(kind);
      const undo = change();
      for (let turn = 0; turn < rounds; turn += 1) {
        await isRight(pair, arrowOf(new Lamp(turn), kind), kind);
      }
      undo();
      await isRight(pair, arrowOf(new Lamp(9), kind), kind);
    }
  });
}

/** Instances of classes whose objects are more than their properties, with what they hold. */
class Registry extends Map<string, number> {
  made = undefined;
}
const exotic: Readonly<Record<string, () => (turn: number) => object>> = {
  'a Map'() {
    class Entries extends Map<string, number> {}
    return (turn) => new Entries([['a', turn]]);
  },
  'a Map with a field': () => (turn) => new Registry([['a', turn]]),
  'a Set'() {
    class Members extends Set<number> {}
    return (turn) => new Members([turn]);
  },
  'a Date'() {
    class Stamp extends Date {}
    return (turn) => new Stamp(turn);
  },
  'a Number'() {
    class Count extends Number {}
    return (turn) => new Count(turn);
  },
  'a String'() {
    class Text extends String {}
    return (turn) => new Text(`text ${turn}`);
  },
  'a Float64Array'() {
    class Vector extends Float64Array {}
    return (turn) => new Vector([turn, 1, 2]);
  },
  'a Buffer'() {
    class Bytes {}
    return (turn) => Object.setPrototypeOf(Buffer.from([turn]), Bytes.prototype);
  },
  'a DataView'() {
    class View extends DataView<ArrayBuffer> {}
    return (turn) => new View(new ArrayBuffer(turn + 1));
  },
  'an ArrayBuffer'() {
    class Memory extends ArrayBuffer {}
    return (turn) => new Memory(turn + 1);
  },
  'an Array'() {
    class List extends Array<number> {}
    return (turn) => new List(turn, 2, 3);
  },
  'an Error'() {
    class Failure extends Error {}
    return (turn) => new Failure(`failure ${turn}`);
  },
  'a RegExp'() {
    class Pattern extends RegExp {}
    return (turn) => new Pattern(`a${turn}`);
  },
  'a URL'() {
    class Address extends URL {}
    return (turn) => new Address(`http://a/${turn}`);
  },
};

for (const [what, maker] of Object.entries(exotic)) {
  test(`${what} of a class of its own as this is as the long way has it`, { skip }, async () => {
    function made(this: unknown): Call {
      return () => [this, this instanceof Map && this.get('a'), `${this}`];
    }
    const make = maker();
    const pair = makePair();
    for (let turn = 0; turn < rounds; turn += 1) {
      const instance = make(turn);
      const before = shown(instance);
      const fn: Call = Reflect.apply(made, instance, []);
      assert.equal(await outcome(pair, fn), await outcome(makePair(), fn), String(turn));
      assert.equal(shown(instance), before, 'it is changed at home');
    }
  });
}

test('an object of another class, again and again, is learnt instead', { skip }, async () => {
  const pair = await known('a property');
  class Other extends Lamp {}
  let turns = 0;
  while (turns < 1000 && !isQuick(pair, arrowOf(new Other(turns), 'a property'))) turns += 1;
  assert.ok(turns > 0 && turns < 1000, String(turns));
  await isRight(pair, arrowOf(new Other(turns), 'a property'));
  await isRight(pair, arrowOf(new Lamp(turns), 'a property'));
});

test('a prototype that its class no longer has goes the long way', { skip }, async (t) => {
  const { Plain, Old } = await imported(t);
  const pair = makePair();
  for (let turn = 0; turn < rounds; turn += 1) await pair.call(new Plain(turn).made());
  const plain = new Plain(1);
  assert.ok(isQuick(pair, plain.made()));
  Plain.prototype.constructor = Old;
  assert.ok(!isQuickOrRefused(pair, plain.made()));
  Plain.prototype.constructor = Plain;
  assert.ok(isQuick(pair, plain.made()));
});

test('memory that moves goes the long way', { skip }, async () => {
  const pair = await known('a property');
  const nothing = () => undefined;
  const moved = { name: nothing, find: () => new ArrayBuffer(1), isMoving: true, carry: nothing };
  const { isSteady } = pair.exporter.exportFunction(arrowOf(new Lamp(1), 'a property'), moved);
  assert.equal(isSteady, undefined);
});

test('known code holds no object of a call', { skip }, async () => {
  const pair = makePair();
  const held: WeakRef<object>[] = [];
  const call = async (kind: string, turn: number): Promise<void> => {
    const lamp = new Lamp(turn);
    const tags = { turn };
    lamp.tags = tags;
    held.push(new WeakRef(lamp), new WeakRef(tags));
    await pair.call(arrowOf(lamp, kind), 2);
  };
  for (const kind of kinds) for (let turn = 0; turn < 3; turn += 1) await call(kind, turn);
  setFlagsFromString('--expose-gc');
  const collect: () => void = vm.runInNewContext('gc');
  // The exporter holds those of the last call until the next one.
  await waitFor(() => {
    collect();
    return held.slice(0, -2).every((each) => each.deref() === undefined);
  });
});

test('a value that V8 refuses leaves nothing to the next call', { skip }, async () => {
  const pair = await known('nested objects');
  const lamp = new Lamp(1);
  lamp.tags = new Uint8Array(new SharedArrayBuffer(8));
  const refused = arrowOf(lamp, 'nested objects');
  assert.ok(!isQuickOrRefused(pair, refused));
  assert.equal(await outcome(pair, refused), await outcome(makePair(), refused));
  const other = arrowOf(new Lamp(2), 'nested objects');
  assert.ok(isQuick(pair, other));
  await isRight(pair, other);
});

/** A module with classes that workers import, and one that hides a part of its instances. */
const module = `
  const hidden = new WeakMap();
  export class Plain {
    constructor(x) { this.x = x; }
    next() { return this.x + 1; }
    made() { return () => [this.x, this.next(), this instanceof Plain]; }
  }
  export function Old() {}
  export class Vault {
    constructor(x) { this.x = x; hidden.set(this, x); }
    made() { return () => [this.x, hidden.get(this)]; }
  }
  export class Later {
    constructor(x) { this.x = x; }
    hide() { hidden.set(this, this.x); return this; }
    made() { return () => this.x; }
  }`;

async function imported(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-classes-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'classes.mjs');
  writeFileSync(file, module);
  return await import(pathToFileURL(file).href);
}

test('an arrow of an instance of a class that is imported is known', { skip }, async (t) => {
  const { Plain } = await imported(t);
  const pair = makePair();
  for (let turn = 0; turn < 2 * rounds; turn += 1) {
    const fn = new Plain(turn).made();
    if (turn >= rounds) assert.ok(isQuick(pair, fn));
    assert.deepEqual(await pair.call(fn), [turn, turn + 1, true]);
  }
});

test('an instance of which a module hides a part is refused in each turn', { skip }, async (t) => {
  const { Vault } = await imported(t);
  const pair = makePair();
  for (let turn = 0; turn < rounds; turn += 1) {
    assert.equal(await outcome(pair, new Vault(turn).made()), 'TRANSFER_UNSUPPORTED');
  }
});

test('an instance of which a module hides a part later is refused from then on', {
  skip,
}, async (t) => {
  const { Later } = await imported(t);
  const pair = makePair();
  for (let turn = 0; turn < rounds; turn += 1) await pair.call(new Later(turn).made());
  const later = new Later(1);
  assert.ok(isQuick(pair, later.made()));
  assert.equal(await outcome(pair, later.hide().made()), 'TRANSFER_UNSUPPORTED');
});

test('random objects arrive as they do the long way', { skip }, async (t) => {
  const { integer, pick } = random(t);
  const all = Object.values(changes);
  let quick = 0;
  for (const kind of kinds) {
    const pair = await known(kind);
    for (let round = 0; round < 40; round += 1) {
      const lamp = new Lamp(integer(0, 9));
      for (let count = integer(0, 6); count > 0; count -= 1) lamp.label += 'x';
      lamp.tags = pick<unknown>([1, 'text', null, [lamp.label], { list: [1, 2] }, new Date(7)]);
      const given = integer(0, 3) === 0 ? pick(all)(lamp) : lamp;
      const fn = Reflect.apply(Lamp.prototype.made, given, [])[kind];
      assert.ok(fn);
      if (isQuickOrRefused(pair, fn)) quick += 1;
      assert.equal(await outcome(pair, fn, 2), await outcome(makePair(), fn, 2), kind);
    }
  }
  assert.ok(quick > 10 * kinds.length, String(quick));
});
