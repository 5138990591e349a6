// Globals that the program added, read by their name and as members of the global object.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isBuiltinGlobal } from '../../../src/context/values/intrinsics.js';
import { Peer } from '../harness.js';

const peer = new Peer();
const config = { level: 1, nested: { ok: true } };
before(() => Object.assign(globalThis, { manycoreConfig: config, manycoreCount: 1 }));
after(() => {
  peer.close();
  Reflect.deleteProperty(globalThis, 'manycoreConfig');
  Reflect.deleteProperty(globalThis, 'manycoreCount');
});

declare global {
  var manycoreConfig: typeof config;
  var manycoreCount: number;
  var manycoreHidden: { a: number };
  var manycoreHiddenFunction: (n: number) => number;
  var manycoreGetter: string;
  var manycoreAbsent: number | undefined;
  var manycoreMade: unknown;
  var manycoreLate: number | undefined;
}

test('a member of the global object arrives as it is at the call', async () => {
  const read = () => [
    globalThis.manycoreConfig.level,
    globalThis['manycoreConfig'].nested?.ok,
    globalThis?.manycoreConfig === manycoreConfig,
    global.manycoreConfig === globalThis.manycoreConfig,
    typeof globalThis.manycoreAbsent,
    typeof globalThis.setTimeout,
  ];
  assert.deepEqual(await peer.run(read), [1, true, true, true, 'undefined', 'function']);
  config.level = 2;
  assert.equal((await peer.run(read))[0], 2);
  assert.deepEqual(await peer.run(read), read());
});

test('one that the function assigns begins at each call with the value at home', async () => {
  const count = () => {
    globalThis.manycoreCount = (globalThis.manycoreCount ?? 10) + 1;
    return globalThis.manycoreCount;
  };
  assert.equal(await peer.run(count), 2);
  assert.equal(await peer.run(count), 2);
});

test('one that the program does not have is kept by the worker', async () => {
  const count = () => {
    globalThis.manycoreAbsent ??= 10;
    globalThis.manycoreAbsent += 1;
    return globalThis.manycoreAbsent;
  };
  assert.equal(await peer.run(count), 11);
  assert.equal(await peer.run(count), 12);
  assert.equal(await peer.run(() => Reflect.deleteProperty(globalThis, 'manycoreAbsent')), true);
});

const loose: { manycoreLate?: number | undefined } = globalThis;

test('code of the worker that reads the global object sees assignments of the function', async () => {
  const readers = [() => [globalThis].some((g) => Reflect.ownKeys(g).includes('manycoreLate'))];
  Object.assign(globalThis, { manycoreLate: 1 });
  try {
    const ways = [
      () => {
        globalThis.manycoreLate = 2;
        return [globalThis.manycoreLate, readers[0]?.()];
      },
      () => [delete loose.manycoreLate, readers[0]?.()],
      () => {
        globalThis.manycoreLate = 1;
        globalThis.manycoreLate++;
        return [globalThis.manycoreLate, readers[0]?.()];
      },
    ];
    for (const [at, want] of [
      [2, true],
      [true, false],
      [2, true],
    ].entries()) {
      assert.deepEqual(await peer.run(ways[at] ?? assert.fail), want);
    }
  } finally {
    Reflect.deleteProperty(globalThis, 'manycoreLate');
    await peer.run(() => Reflect.deleteProperty(globalThis, 'manycoreLate'));
  }
});

test('a function made in the worker that assigns a global comes back', async () => {
  const make = () => () => {
    globalThis.manycoreCount = 9;
    return [manycoreCount, globalThis.manycoreCount];
  };
  const count = globalThis.manycoreCount;
  try {
    const back = await peer.run(make);
    assert.deepEqual(back(), [9, 9]);
  } finally {
    globalThis.manycoreCount = count;
  }
});

test('a global that is added after the first call of a function arrives', async () => {
  const ways = [
    () => globalThis.manycoreLate,
    () => (typeof manycoreLate === 'undefined' ? undefined : manycoreLate),
    () => ('manycoreLate' in globalThis ? 5 : undefined),
  ];
  for (const way of ways) assert.equal(await peer.run(way), undefined);
  Object.assign(globalThis, { manycoreLate: 5 });
  try {
    for (const way of ways) assert.equal(await peer.run(way), 5);
  } finally {
    Reflect.deleteProperty(globalThis, 'manycoreLate');
  }
  for (const way of ways) assert.equal(await peer.run(way), undefined);
});

test('a global that cannot travel is of the worker where the function makes a missing one', async () => {
  Object.assign(globalThis, { manycoreMade: new WeakMap([[{}, 1]]) });
  try {
    const made = () => {
      globalThis.manycoreMade ??= 'made';
      return globalThis.manycoreMade;
    };
    const all = () => [made(), globalThis.manycoreMade, typeof manycoreMade];
    assert.deepEqual(await peer.run(all), ['made', 'made', 'string']);
    await assert.rejects(
      peer.run(() => globalThis.manycoreMade),
      /path: .* → global manycoreMade/s,
    );
    const other = () => {
      globalThis.manycoreMade = 5;
      return made();
    };
    assert.equal(await peer.run(other), 5);
  } finally {
    Reflect.deleteProperty(globalThis, 'manycoreMade');
  }
});

test('a method of the global object has it as `this`', async () => {
  class Own {
    strict(): unknown[] {
      return [this === Object(globalThis), typeof this];
    }
  }
  const lib = Object.assign(() => 'called', { bind: () => 'not the bind of functions' });
  Object.assign(globalThis, { manycoreMethod: new Own().strict, manycoreLib: lib });
  try {
    const call =
      (g: typeof globalThis & { manycoreMethod?: () => unknown; manycoreLib?: () => unknown }) =>
      () => [g.manycoreMethod?.(), (g.manycoreMethod ?? assert.fail)(), g.manycoreLib?.()];
    const read = call(globalThis);
    assert.deepEqual(await peer.run(read), read());
    assert.deepEqual(read()[0], [true, 'object']);
  } finally {
    Reflect.deleteProperty(globalThis, 'manycoreMethod');
    Reflect.deleteProperty(globalThis, 'manycoreLib');
  }
});

const alias = globalThis;
const presentKey = 'manycoreConfig';
const absentKey = 'manycoreAbsent';

/** Each way to read a member of the global object that can be seen in the text. */
const ways: Readonly<Record<string, () => unknown>> = {
  'taken apart': () => {
    const { manycoreConfig, manycoreCount: count, manycoreAbsent = 7, crypto } = globalThis;
    return [manycoreConfig, count, manycoreAbsent, typeof crypto.randomUUID];
  },
  'taken apart by text keys, with a pattern inside': () => {
    const {
      manycoreConfig: {
        level,
        nested: { ok },
      },
      manycoreCount: count,
    } = global;
    return [level, ok, count];
  },
  'taken apart, with the others': () => {
    const { manycoreCount, manycoreConfig, Array: list, ...rest } = globalThis;
    const others = ['manycoreCount' in rest, typeof rest.setTimeout];
    return [manycoreCount, manycoreConfig, list === Array, ...others];
  },
  'taken apart by a key in a constant': () => {
    const { [presentKey]: config, [absentKey]: absent = 3 } = globalThis;
    return [config.level, absent];
  },
  'taken apart in a parameter': () => {
    const read = ({ manycoreCount } = globalThis) => manycoreCount;
    return read();
  },
  'taken apart by an assignment': () => {
    let manycoreCount = 0;
    ({ manycoreCount } = globalThis);
    return manycoreCount;
  },
  'an alias inside': () => {
    const g = globalThis;
    const inner = () => g['manycoreConfig'].level + g.manycoreCount;
    return [inner(), g === globalThis];
  },
  'an alias of an alias': () => {
    const g = globalThis;
    const { manycoreCount } = g;
    return manycoreCount;
  },
  'an alias outside': () => [
    alias.manycoreConfig.level,
    alias === globalThis,
    alias.Array === Array,
  ],
  in: () => [
    'manycoreConfig' in globalThis,
    'manycoreAbsent' in globalThis,
    presentKey in alias,
    'Array' in globalThis,
  ],
  'Reflect and Object.hasOwn': () => [
    Reflect.get(globalThis, 'manycoreConfig').level,
    Reflect.get(alias, presentKey) === manycoreConfig,
    Reflect.has(globalThis, 'manycoreCount'),
    Object.hasOwn(globalThis, 'manycoreConfig'),
    Object.hasOwn(globalThis, absentKey),
    Reflect.get(globalThis, 'Array') === Array,
    Reflect.get({ manycoreCount: 4 }, 'manycoreCount'),
  ],
  'a key in a constant': () => [
    Reflect.get({ ...globalThis[presentKey] }, 'level'),
    globalThis[absentKey],
    globalThis?.[presentKey] === manycoreConfig,
  ],
  'a variable that only looks like it': () => {
    const globalThis = { manycoreConfig: 1 };
    const { manycoreConfig } = globalThis;
    return [manycoreConfig, globalThis.manycoreConfig, 'manycoreCount' in globalThis];
  },
  'an alias that changes': () => {
    let g: { manycoreConfig: unknown } = globalThis;
    g = { manycoreConfig: 5 };
    return g.manycoreConfig;
  },
};

for (const [name, read] of Object.entries(ways)) {
  test(`${name}: a read of the global object`, async () => {
    assert.deepEqual(await peer.run(read), read());
  });
}

test('keys in variables are those of the call', async () => {
  type Name = 'manycoreConfig' | 'Array';
  const readBy = (first: Name, second: Name) => () =>
    [globalThis[first], globalThis[second]].map((value) => typeof value);
  const user = 'manycoreConfig';
  for (const read of [readBy(user, user), readBy(user, 'Array'), readBy('Array', user)]) {
    assert.deepEqual(await peer.run(read), read());
  }
});

test('reads beside an assignment, under any name, are of the global object where it runs', async () => {
  const read = () => {
    const g = globalThis;
    g.manycoreCount = 30;
    const { manycoreCount } = globalThis;
    return [manycoreCount, alias.manycoreCount, 'manycoreCount' in globalThis];
  };
  assert.deepEqual(await peer.run(read), [30, 30, true]);
});

test('reads beside a function that sets a member are of the global object where they run', async () => {
  const set = () => {
    Reflect.set(globalThis, 'manycoreCount', 40);
    return globalThis.manycoreCount;
  };
  assert.equal(await peer.run(set), 40);
  const define = () => {
    Object.defineProperty(globalThis, presentKey, { value: { level: 9 }, configurable: true });
    return [globalThis.manycoreConfig.level, Reflect.get(globalThis, presentKey).level];
  };
  assert.deepEqual(await peer.run(define), [9, 9]);
});

test('hidden globals, and those with a getter, travel', async () => {
  const names = ['manycoreHidden', 'manycoreHiddenFunction', 'manycoreGetter'];
  const hidden = (value: unknown) => ({ value, configurable: true });
  Object.defineProperties(globalThis, {
    manycoreHidden: hidden({ a: 1 }),
    manycoreHiddenFunction: hidden((n: number) => n + 1),
    manycoreGetter: { get: () => 'got', configurable: true },
  });
  try {
    const read = () => [
      manycoreHidden.a,
      globalThis.manycoreHidden.a,
      manycoreHiddenFunction(1),
      manycoreGetter,
      globalThis.manycoreGetter,
      typeof structuredClone,
      typeof Intl,
    ];
    assert.deepEqual(await peer.run(read), read());
  } finally {
    for (const name of names) Reflect.deleteProperty(globalThis, name);
  }
});

test('every hidden global of Node is recognized by its name', async () => {
  const names = Object.getOwnPropertyNames(globalThis).filter((name) => {
    const { enumerable } = Object.getOwnPropertyDescriptor(globalThis, name) ?? {};
    return enumerable === false;
  });
  assert.ok(names.length > 50);
  assert.deepEqual(
    names.filter((name) => !isBuiltinGlobal(name)),
    [],
  );
});

test('a variable called like the global object is not the global object', async () => {
  const read = (globalThis: { readonly manycoreConfig: number }) => globalThis.manycoreConfig;
  assert.equal(await peer.run(read, { manycoreConfig: 5 }), 5);
});

test('a polyfill that was taken from a built-in object travels by value', async () => {
  const added = { value: (list: readonly number[]) => list.at(-1), configurable: true };
  Object.defineProperty(Array, 'manycoreLast', added);
  try {
    const last = added.value;
    assert.equal(await peer.run(() => last([1, 2])), 2);
    const { from } = Array;
    assert.equal(await peer.run(() => from === Array.from), true);
    const { createObjectURL } = URL;
    assert.equal(await peer.run(() => createObjectURL === URL.createObjectURL), true);
  } finally {
    Reflect.deleteProperty(Array, 'manycoreLast');
  }
});

test("the process's own streams arrive as those of the worker", async () => {
  const { stdin, stdout, stderr } = process;
  const held = { stdout };
  assert.deepEqual(
    await peer.run(() => [
      stdin === process.stdin,
      held.stdout === process.stdout,
      stdout === process.stdout,
      stderr === process.stderr,
    ]),
    [true, true, true, true],
  );
});
