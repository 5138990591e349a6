// Classes arrive as they are, not as their text once made them.
// biome-ignore-all lint/complexity/noStaticOnlyClass: statics are the subject
// biome-ignore-all lint/suspicious/noAssignInExpressions: names in brackets with an effect are tested

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Peer } from '../harness.js';

const peers = [new Peer(), new Peer()] as const;
const [peer, other] = peers;
after(() => {
  for (const each of peers) each.close();
});

/** Runs `probe` here, in a peer that has seen its classes, and in one that may not have. */
async function same(probe: () => unknown): Promise<void> {
  const home = probe();
  assert.deepEqual(await peer.run(probe), home);
  assert.deepEqual(await peer.run(probe), home, 'the second time');
}

class Greeter {
  greet(): string {
    return 'original';
  }
  static make(): string {
    return 'original';
  }
  get value(): string {
    return 'original';
  }
}

test('replaced methods, statics and accessors arrive', async () => {
  class Patched extends Greeter {
    override greet(): string {
      return 'text';
    }
    static override make(): string {
      return 'text';
    }
    override get value(): string {
      return 'text';
    }
  }
  const probe = () => [new Patched().greet(), Patched.make(), new Patched().value];
  await same(probe);
  Patched.prototype.greet = () => 'patched';
  Patched.make = () => 'patched';
  Object.defineProperty(Patched.prototype, 'value', { get: () => 'patched', configurable: true });
  await same(probe);
  assert.deepEqual(await other.run(probe), ['patched', 'patched', 'patched']);
  const { prototype } = Patched;
  assert.deepEqual(await other.run(() => prototype.greet.call(new Patched())), 'patched');
});

test('an accessor arrives without a removed half, and with an added one', async () => {
  class Halves {
    get both(): string {
      return 'got';
    }
    set both(_: string) {}
    get one(): string {
      return 'got';
    }
  }
  const probe = () =>
    (['both', 'one'] as const).map((key) => {
      const { get, set } = Object.getOwnPropertyDescriptor(Halves.prototype, key) ?? {};
      return [typeof get, typeof set];
    });
  await same(probe);
  const define = (key: 'both' | 'one', descriptor: object): void => {
    Object.defineProperty(Halves.prototype, key, descriptor);
  };
  define('both', { set: undefined });
  define('one', { set() {} });
  await same(probe);
  assert.deepEqual(await other.run(probe), [
    ['function', 'undefined'],
    ['function', 'function'],
  ]);
  define('both', { get: undefined, set() {} });
  await same(probe);
});

test('code under a key that cannot be defined again arrives', async () => {
  let n = 1;
  class Fixed {}
  const probe = () => [Reflect.get(Fixed, 'made'), Reflect.apply(Reflect.get(Fixed, 'fn'), 0, [])];
  Object.defineProperty(Fixed, 'made', { get: () => n });
  Object.defineProperty(Fixed, 'fn', { value: () => n });
  for (const next of [2, 3]) {
    await same(probe);
    n = next;
    await same(probe);
  }
  assert.ok((await peer.run(() => new Fixed())) instanceof Fixed);
});

test('members under symbols arrive, and deleted members do not', async () => {
  const mark = Symbol('mark');
  class Marked {
    kept(): number {
      return 1;
    }
    gone(): number {
      return 2;
    }
    static gone(): number {
      return 3;
    }
  }
  Reflect.set(Marked.prototype, Symbol.iterator, function* () {
    yield 5;
  });
  Reflect.set(Marked, mark, 'marked');
  Reflect.deleteProperty(Marked.prototype, 'gone');
  Reflect.deleteProperty(Marked, 'gone');
  await same(() => [
    Reflect.get(Marked.prototype, Symbol.iterator)().next().value,
    Reflect.get(Marked, mark),
    'gone' in Marked.prototype,
    'gone' in Marked,
    new Marked().kept(),
  ]);
});

test('a method that is replaced and put back is the original again', async () => {
  class Stubbed {
    get(): string {
      return 'real';
    }
  }
  const probe = () => new Stubbed().get();
  const real = Stubbed.prototype.get;
  await same(probe);
  Stubbed.prototype.get = () => 'stub';
  await same(probe);
  Stubbed.prototype.get = real;
  await same(probe);
  assert.equal(await other.run(probe), 'real');
});

test('a class that changes between calls is the same in every peer', async () => {
  class Settings {
    static level = 'info';
    static list = [1];
    static map = new Map([['a', 1]]);
  }
  const probe = () => [
    Settings.level,
    Settings.list,
    [...Settings.map],
    Reflect.get(Settings, 'more'),
  ];
  await same(probe);
  Settings.level = 'debug';
  Settings.list.push(2);
  Settings.map.set('b', 2);
  Reflect.set(Settings, 'more', 'more');
  await same(probe);
  assert.deepEqual(await other.run(probe), probe());
  Reflect.deleteProperty(Settings, 'more');
  Reflect.set(Settings.prototype, 'later', () => 'later');
  const late = () => [...probe(), Reflect.get(new Settings(), 'later')()];
  await same(late);
  assert.deepEqual(await other.run(late), late());
});

test('a static that a peer changed lives on there until it changes at home', async () => {
  class Counter {
    static count = 0;
    static limit = 10;
  }
  const next = () => {
    Counter.count += 1;
    return [Counter.count, Counter.limit];
  };
  assert.deepEqual(await peer.run(next), [1, 10]);
  assert.deepEqual(await peer.run(next), [2, 10]);
  Counter.limit = 20;
  assert.deepEqual(await peer.run(next), [3, 20]);
  Counter.count = 100;
  assert.deepEqual(await peer.run(next), [101, 20]);
});

test('static blocks and initialisers run once, at home', async () => {
  const log: string[] = [];
  class Registered {
    static id = log.push('id');
    static twice = (n: number) => n * 2;
    static {
      log.push('block');
    }
    static last = log.push('last');
  }
  await same(() => [Registered.id, Registered.last, log, Registered.twice(4)]);
});

test('private statics arrive with their values', async () => {
  class Ids {
    static #next = 1;
    static #names = new Map([[0, 'zero']]);
    static #format = (n: number) => `#${n}`;
    static take(): number {
      Ids.#next += 1;
      return Ids.#next;
    }
    static name(n: number): string {
      const found = Ids.#names.get(n) ?? Ids.#format(n);
      Ids.#names.set(n, found);
      return found;
    }
    static size(): number {
      return Ids.#names.size;
    }
  }
  Ids.take();
  Ids.name(7);
  const look = () => Ids.size();
  await same(look);
  Ids.name(8);
  await same(look);
  assert.equal(await peer.run(() => Ids.take()), 3);
});

test('members whose names in brackets nothing else uses arrive', async () => {
  const key = 'method';
  const symbol = Symbol('symbol');
  let count = 0;
  class Computed {
    [key](): string {
      return 'method';
    }
    [`get${(count += 1)}`](): string {
      return 'get';
    }
    static [symbol](): string {
      return 'static';
    }
    // @ts-expect-error: the types require literal names, the language does not
    static [`field${(count += 1)}`] = 'field';
    get [Symbol.toStringTag](): string {
      return 'Tag';
    }
  }
  await same(() => [
    new Computed().method(),
    Reflect.get(new Computed(), 'get1')(),
    Reflect.get(Computed, 'field2'),
    String(new Computed()),
  ]);
  await same(() => Reflect.get(Computed, symbol)());
  assert.equal(count, 2);
});

test('a base class that names its subclass travels', async () => {
  class Expr {
    plus(right: Expr): Expr {
      return new Add(this, right);
    }
    isAdd(): boolean {
      return this instanceof Add;
    }
    value(): number {
      return 0;
    }
  }
  class Add extends Expr {
    readonly left: Expr;
    readonly right: Expr;
    constructor(left: Expr, right: Expr) {
      super();
      this.left = left;
      this.right = right;
    }
    override value(): number {
      return this.left.value() + this.right.value();
    }
  }
  class Num extends Expr {
    readonly n: number;
    constructor(n: number) {
      super();
      this.n = n;
    }
    override value(): number {
      return this.n;
    }
  }
  const sum = new Num(1).plus(new Num(2));
  await same(() => [new Num(1).plus(new Num(2)).value(), sum.value(), sum.isAdd()]);
  assert.equal(await peer.run((given) => given.plus(new Num(4)).value(), sum), 7);
  const made = await peer.run(() => new Num(1).plus(new Num(2)));
  assert.ok(made instanceof Add);
  assert.equal(made.value(), 3);
});

test('a changed prototype of a class and of its instances arrives', async () => {
  class First {
    static kind(): string {
      return 'first';
    }
  }
  class Second {
    hi(): string {
      return 'second';
    }
  }
  class Mixed {}
  Object.setPrototypeOf(Mixed, First);
  Object.setPrototypeOf(Mixed.prototype, Second.prototype);
  await same(() => [Reflect.get(Mixed, 'kind')(), Reflect.get(new Mixed(), 'hi')()]);
});

test('functions that captured a function see its later properties', async () => {
  const helper = (n: number) => n + 1;
  const probe = () => [helper(1), Reflect.get(helper, 'extra')];
  await same(probe);
  Reflect.set(helper, 'extra', 5);
  await same(probe);
  function self(): unknown {
    return Reflect.get(self, 'extra');
  }
  await same(self);
  Reflect.set(self, 'extra', 6);
  await same(self);
});

function logged<T extends (...args: never[]) => unknown>(method: T, context: { name: unknown }) {
  const wrapped: unknown = function (this: unknown, ...args: unknown[]) {
    return `logged ${String(context.name)}: ${String(Reflect.apply(method, this, args))}`;
  };
  return wrapped as T;
}

function counted<T extends abstract new (...args: never[]) => object>(Class: T): void {
  Reflect.set(Class, 'counted', Number(Reflect.get(Class, 'counted') ?? 0) + 1);
}

test('standard decorators work as TypeScript writes them', async () => {
  @counted
  class Decorated {
    @logged
    greet(name: string): string {
      return `hello ${name}`;
    }
  }
  await same(() => [new Decorated().greet('you'), Reflect.get(Decorated, 'counted')]);
});

test('legacy decorators work as TypeScript writes them', async () => {
  class Legacy {
    greet(): string {
      return 'hello';
    }
  }
  const descriptor = Object.getOwnPropertyDescriptor(Legacy.prototype, 'greet');
  const { value } = descriptor ?? {};
  Object.defineProperty(Legacy.prototype, 'greet', {
    ...descriptor,
    value(this: unknown) {
      return `<${String(Reflect.apply(value, this, []))}>`;
    },
  });
  await same(() => new Legacy().greet());
});
