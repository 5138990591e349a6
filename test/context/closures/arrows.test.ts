// Arrows that use `this`: bound to the copy of the object that holds them, or with the `this` around them, or refused.
// Long (over 400 lines), because each place in which a source puts an arrow is a case.
// biome-ignore-all lint/complexity/noStaticOnlyClass: statics are the subject

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { after, test } from 'node:test';
import { closureReader } from '../../../src/context/closures/closure-reader.js';
import { hasCode } from '../../../src/errors.js';
import { Peer } from '../harness.js';

const peer = new Peer();
after(() => peer.close());

const isRead = closureReader() !== undefined;

/** Fails unless the copy of `fn` returns the same as `fn`, or is refused without native reading. */
async function givesThis<A extends unknown[]>(
  fn: (...args: A) => unknown,
  wanted: unknown,
  ...args: A
): Promise<void> {
  assert.deepEqual(fn(...args), wanted);
  if (isRead) assert.deepEqual(await peer.run(fn, ...args), wanted);
  else await assert.rejects(peer.run(fn, ...args), { code: 'TRANSFER_UNREADABLE' });
}

class Price {
  vat = 0.5;
  net: number;
  constructor(net: number) {
    this.net = net;
  }
  gross = () => this.net * (1 + this.vat);
  parts = { all: [() => this.net, () => this.vat] };
}

class Later extends Error {
  readonly wait = 5;
  readonly retry: () => number;
  constructor(message: string) {
    super(message);
    this.retry = () => this.wait;
  }
}

test('a field that is an arrow belongs to its instance', async () => {
  const price = new Price(100);
  assert.equal(await peer.run(() => price.gross()), 150, 'captured');
  assert.equal(await peer.run((given) => given.gross(), new Price(200)), 300, 'given');
  const made = await peer.run((net) => new Price(net), 10);
  assert.ok(made instanceof Price);
  assert.equal(made.gross(), 15, 'returned');
  made.net = 20;
  assert.equal(made.gross(), 30, 'bound to the object itself');
  assert.deepEqual(await peer.run(() => price.parts.all.map((part) => part())), [100, 0.5]);
  const changed = await peer.run((given) => {
    given.net = 2;
    return [given.gross(), given] as const;
  }, price);
  assert.equal(changed[0], 3);
  assert.equal(changed[1].gross(), 3, 'and what comes back to what came back');
});

test('an arrow that went to a peer and came back is still bound', async () => {
  const back = await peer.run((given) => given, new Price(40));
  assert.equal(back.gross(), 60);
  assert.equal(await peer.run((given) => given.gross(), back), 60);
});

test('an arrow that a constructor put on its instance belongs to it', async () => {
  function Old(this: { x: number; get: () => number }, x: number) {
    this.x = x;
    this.get = () => this.x;
  }
  const old = Reflect.construct(Old, [7]);
  assert.equal(await peer.run(() => old.get()), 7);
});

const symbol = Symbol('key');
const named = 'named';

/** Objects with an arrow that belongs to them and returns 7. */
const holders: Readonly<Record<string, () => { v: number; read(): unknown }>> = {
  'a method of an object': () => {
    const made = {
      v: 7,
      got: (): unknown => 0,
      init() {
        this.got = () => this.v;
      },
      read(): unknown {
        return this.got();
      },
    };
    made.init();
    return made;
  },
  'a method of its prototype': () => {
    const above = {
      v: 0,
      got: (): unknown => 0,
      init() {
        this.got = () => this.v;
        return this;
      },
      read(): unknown {
        return this.got();
      },
    };
    return Object.assign(Object.create(above), { v: 7 }).init();
  },
  'a function that became a method': () => {
    function init(this: { v: number; got?: () => unknown }): void {
      this.got = () => this.v;
    }
    const made = {
      v: 7,
      init,
      read(): unknown {
        return Reflect.get(this, 'got')();
      },
    };
    made.init();
    return made;
  },
  'a setter': () => {
    const made = {
      v: 7,
      got: (): unknown => 0,
      set on(_: boolean) {
        this.got = () => this.v;
      },
      read(): unknown {
        return this.got();
      },
    };
    made.on = true;
    return made;
  },
  'a computed key': () => {
    const made = {
      v: 7,
      init() {
        Reflect.set(this, 'plain', 1);
        // @ts-expect-error: the types require fixed keys, the language does not
        this[symbol] = () => this.v;
      },
      read(): unknown {
        return Reflect.get(this, symbol)();
      },
    };
    made.init();
    return made;
  },
  'a field under a symbol': () =>
    new (class {
      v = 7;
      [symbol] = () => this.v;
      read(): unknown {
        return this[symbol]();
      }
    })(),
  'a field under a computed name': () =>
    new (class {
      v = 7;
      [named] = () => this.v;
      read(): unknown {
        return this[named]();
      }
    })(),
};

for (const [title, make] of Object.entries(holders)) {
  test(`an arrow by ${title} belongs to its object`, async () => {
    const made = make();
    assert.equal(await peer.run(() => made.read()), 7, 'captured');
    assert.equal(await peer.run((given) => given.read(), make()), 7, 'given');
    const back = await peer.run((given) => given, make());
    assert.equal(back.read(), 7, 'returned');
    const changed = await peer.run((given) => {
      given.v = 8;
      return given;
    }, make());
    assert.equal(changed.read(), 8, 'bound to the copy');
    const there = await peer.run(() => make());
    assert.equal(there.read(), 7, 'made in the worker');
  });
}

/** Arrows on no object of theirs, whose makers have returned; each gives 7 as a copy. */
const loose: Readonly<Record<string, () => () => unknown>> = {
  'a method': () =>
    ({
      v: 7,
      make: function () {
        return () => this.v;
      },
    }).make(),
  'a method, two arrows deep': () =>
    ({
      v: 7,
      make: function () {
        return () => () => this.v;
      },
    }).make()(),
  'a block of a method': () =>
    ({
      v: 4,
      make() {
        for (const more of [3]) return () => this.v + more;
        return () => 0;
      },
    }).make(),
  'a callback in a method': () =>
    ({
      v: 7,
      make: function () {
        return [() => this.v].map((each) => () => each())[0] ?? (() => 0);
      },
    }).make(),
  'a field of a class': () =>
    new (class {
      v = 7;
      list = [() => this.v];
    })().list[0] ?? (() => 0),
  'a static field': () => {
    class Statics {
      static v = 7;
      static list = [() => this.v];
    }
    return Statics.list[0] ?? (() => 0);
  },
  'a derived constructor': () => {
    class Base {
      v = 7;
    }
    class Derived extends Base {
      list: (() => number)[];
      constructor() {
        super();
        this.list = [() => this.v];
      }
    }
    return new Derived().list[0] ?? (() => 0);
  },
  'a function with a primitive `this`'() {
    function make(this: number): () => unknown {
      return () => this;
    }
    return make.call(7);
  },
  'a sloppy function': () => new Function('return () => Number(this)').call(7),
  'arguments beside it'() {
    function make(this: { v: number }, ..._: number[]): () => unknown {
      // biome-ignore lint/complexity/noArguments: the subject
      return () => this.v + arguments.length;
    }
    return make.call({ v: 5 }, 1, 2);
  },
  'many variables beside it': () =>
    new Function(
      `${Array.from({ length: 100 }, (_, at) => `let v${at} = ${at};`).join('')}
      return () => this.v + v7 + ${Array.from({ length: 100 }, (_, at) => `0 * v${at}`).join(' + ')};`,
    ).call({ v: 0 }),
};

for (const [title, make] of Object.entries(loose)) {
  test(`the \`this\` of an arrow made in ${title} travels`, async () => {
    const fn = make();
    assert.equal(fn(), 7);
    await givesThis(() => fn(), 7);
    await givesThis((given: () => unknown) => given(), 7, fn);
  });
}

test('the `this` of an async method and of a generator travels', { skip: !isRead }, async () => {
  const made = {
    v: 7,
    async later() {
      await null;
      return () => this.v;
    },
    *many() {
      yield () => this.v;
    },
  };
  const later = await made.later();
  assert.equal(await peer.run(() => later()), 7);
  const [yielded] = made.many();
  assert.equal(await peer.run(() => yielded?.()), 7);
});

test('an arrow has the `this` of its own call of a recursive function', {
  skip: !isRead,
}, async () => {
  const found: (() => number)[] = [];
  const make = function (this: { v: number }, depth: number): void {
    found.push(() => this.v);
    if (depth > 0) make.call({ v: depth }, depth - 1);
  };
  make.call({ v: 7 }, 3);
  assert.deepEqual(await Promise.all(found.map((fn) => peer.run(() => fn()))), [7, 3, 2, 1]);
});

test('an arrow whose `this` has no value yet is refused', async () => {
  let early: () => unknown = () => 0;
  class Base {}
  class Derived extends Base {
    constructor() {
      early = () => this;
      if (early !== undefined) throw new Error('before super()');
      super();
    }
  }
  assert.throws(() => new Derived(), /before super/);
  await assert.rejects(
    () => peer.run(() => early()),
    (error) => hasCode(error, 'TRANSFER_UNREADABLE'),
  );
});

test('an arrow that is captured before its object belongs to the copy of that', {
  skip: !isRead,
}, async () => {
  const price = new Price(1);
  const { gross } = price;
  const back = await peer.run((net) => {
    gross();
    price.net = net;
    return price;
  }, 20);
  assert.equal(back.gross(), 30);
});

test('an error whose constructor made an arrow keeps its class', async () => {
  const thrown = await peer
    .run(() => {
      throw new Later('later');
    })
    .catch((error: unknown) => error);
  assert.ok(thrown instanceof Later);
  assert.equal(thrown.retry(), 5);
});

test('a static arrow belongs to its class', async () => {
  class Registry {
    static size = 3;
    static count = () => Registry.size + this.size;
    static handlers = { count: () => this.size };
  }
  assert.deepEqual(await peer.run(() => [Registry.count(), Registry.handlers.count()]), [6, 3]);
  const { handlers } = Registry;
  await givesThis(() => handlers.count(), 3);
});

test('an arrow away from its object keeps that', async () => {
  const { gross } = new Price(1);
  const price = new Price(2);
  const spread = { ...price };
  const copied = Object.assign(new Price(4), price);
  await peer.run(() => price.gross());
  await givesThis(() => gross(), 1.5);
  await givesThis(() => spread.gross(), 3);
  await givesThis(() => copied.gross(), 3);
  // The object that the arrow was made for is there, too.
  const both = () => [price.gross(), copied.gross(), price.gross === copied.gross];
  assert.deepEqual(await peer.run(both), [3, 3, true]);
});

test('an arrow on another object of the same class keeps its own', async () => {
  class Node {
    readonly id: number;
    up: () => number = () => 0;
    constructor(id: number, parent?: Node) {
      this.id = id;
      if (parent !== undefined) parent.up = () => this.id;
    }
  }
  const parent = new Node(1);
  new Node(2, parent);
  await givesThis(() => parent.up(), 2);
});

test('arrows in compiled fields, and in fields of CommonJS, belong to their instances', async () => {
  const { Lowered, Field } = createRequire(import.meta.url)(
    '../../../../test/context/fixtures/arrows.cjs',
  );
  const objects = [new Lowered(3), new Field(3)];
  assert.deepEqual(await peer.run(() => objects.map((each) => each.get())), [3, 3]);
  assert.deepEqual(await peer.run((given) => given.map((each) => each.get()), objects), [3, 3]);
});

test('an arrow at the top of a CommonJS file has its exports as `this`', async () => {
  const { make } = createRequire(import.meta.url)('../../../../test/context/fixtures/top-this.cjs');
  const arrow = make();
  assert.equal(await peer.run(() => arrow()), 'of the file');
});

test('where the file replaced its exports, `this` is gone', async () => {
  const { make } = createRequire(import.meta.url)(
    '../../../../test/context/fixtures/replaced-exports.cjs',
  );
  const arrow = make();
  await assert.rejects(
    peer.run(() => arrow()),
    { code: 'TRANSFER_UNREADABLE' },
  );
});
