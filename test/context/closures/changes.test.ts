// Functions and classes that change between two calls. Each call sees the state at home, in a worker that had
// the function before and in a new one. Changes are random: `MANYCORE_RUNS=n` makes that many programs of
// them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type AnyFunction,
  createExporter,
  createImporter,
  type FunctionSnapshot,
} from '../../../src/context/index.js';
import { CodedError } from '../../../src/errors.js';
import { type Random, random } from '../../support/index.js';

const exporter = createExporter();

/** A worker: it keeps received definitions. */
class Peer {
  readonly #importer = createImporter({ exporter: createExporter() });
  readonly #sent = new Set<number>();

  run(fn: AnyFunction, args: readonly unknown[]): unknown {
    const snapshot = exporter.exportFunction(fn);
    const values = exporter.exportValue(args, 'the arguments');
    const joint = exporter.exportJoint(fn, args, values.definitions.length > 0);
    if (joint !== undefined) return this.#function(joint)();
    this.#defineAll(values.definitions);
    const copies = this.#importer.importValue(values.bytes);
    return this.#function(snapshot)(...(Array.isArray(copies) ? copies : []));
  }

  #function({ id, definitions, state }: FunctionSnapshot) {
    this.#defineAll(definitions);
    return this.#importer.importFunction(id, state);
  }

  #defineAll(ids: readonly number[]): void {
    for (const id of ids) {
      if (this.#sent.has(id)) continue;
      this.#sent.add(id);
      assert.equal(this.#importer.define(id, exporter.definition(id)), undefined);
    }
  }
}

// biome-ignore-start lint/suspicious/noExplicitAny: what is changed is of any kind

/** The visible state of a function: keys in their order, descriptors, prototype. */
const stateOf = (fn: any): unknown => {
  const builtins = new Map<unknown, string>([
    [null, 'null'],
    [Object.prototype, 'Object'],
    [Function.prototype, 'Function'],
  ]);
  for (const each of [function* () {}, async () => {}, async function* () {}]) {
    builtins.set(Object.getPrototypeOf(each), 'kind');
    builtins.set((Object.getPrototypeOf(each) as any).prototype, 'items');
  }
  const seen: unknown[] = [];
  const show = (value: any): unknown => {
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null) {
      return value === undefined ? 0 : `${typeof value} ${String(value)}`;
    }
    const builtin = builtins.get(value);
    if (builtin !== undefined) return builtin;
    const known = seen.indexOf(value);
    if (known >= 0) return `#${known}`;
    seen.push(value);
    const isSloppy = (key: unknown) => key === 'arguments' || key === 'caller';
    const own = Reflect.ownKeys(value).map((key): unknown => {
      if (typeof value === 'function' && isSloppy(key)) return key;
      const own = Object.getOwnPropertyDescriptor(value, key) as any;
      const flags = [own.writable, own.enumerable, own.configurable].map(Number).join('');
      return [String(key), flags, show(own.value), show(own.get), show(own.set)];
    });
    const closed = [Object.isExtensible(value), Object.isSealed(value), Object.isFrozen(value)];
    return [typeof value, own, show(Object.getPrototypeOf(value)), closed];
  };
  return JSON.stringify(show(fn));
};

const mark = Symbol('mark');
const above = { label: 'above', twice: (n: number) => 2 * n };

/** Functions of each kind, anew. */
const kinds: Record<string, () => any> = {
  arrow: () => () => 1,
  function: () =>
    function plain() {
      return 1;
    },
  anonymous: () => (() => () => {})(),
  recursive: () =>
    function fall(n: number): number {
      return n < 1 ? 0 : fall(n - 1);
    },
  method: () =>
    ({
      method() {
        return 1;
      },
    }).method,
  getter: () =>
    Object.getOwnPropertyDescriptor(
      {
        get size() {
          return 1;
        },
      },
      'size',
    )?.get,
  generator: () =>
    function* items() {
      yield 1;
    },
  async: () => async () => 1,
  'async generator': () =>
    async function* items() {
      yield 1;
    },
  eval: () =>
    function text() {
      // biome-ignore lint/security/noGlobalEval: the point of the test
      return eval('1');
    },
  class: () =>
    class Plain {
      static of() {
        return new Plain();
      }
      method(a: number) {
        return a;
      }
      *items() {
        yield 1;
      }
      get size() {
        return 1;
      }
      set size(_) {}
      static count = 1;
      static made = () => 2;
    },
};

/** Changes of a function; `n` differs each time. */
const changes: Record<string, (fn: any, n: number) => void> = {
  property: (fn, n) => void Reflect.set(fn, 'q', n),
  'another property': (fn, n) => void Reflect.set(fn, 'r', n),
  'property gone': (fn) => void delete fn.q,
  'property again': (fn, n) => {
    delete fn.q;
    Reflect.set(fn, 'q', n);
  },
  symbol: (fn, n) => void Reflect.set(fn, mark, n),
  hidden: (fn, n) => void Object.defineProperty(fn, 'h', { value: n, configurable: true }),
  accessor: (fn) => void Object.defineProperty(fn, 'a', { get: () => 7, configurable: true }),
  name: (fn, n) => void Object.defineProperty(fn, 'name', { value: `name${n}` }),
  'open name': (fn) => void Object.defineProperty(fn, 'name', { writable: true }),
  'no name': (fn) => void delete fn.name,
  length: (fn, n) => void Object.defineProperty(fn, 'length', { value: n }),
  'no length': (fn) => void delete fn.length,
  'what it inherits': (fn) => void Object.setPrototypeOf(fn, above),
  'inherits nothing': (fn) => void Object.setPrototypeOf(fn, null),
  closed: (fn) => void Object.preventExtensions(fn),
  sealed: (fn) => void Object.seal(fn),
  frozen: (fn) => void Object.freeze(fn),
  'of the prototype': (fn, n) => void Reflect.set(fn.prototype, 'x', n),
  'symbol of the prototype': (fn, n) => void Reflect.set(fn.prototype, mark, n),
  'hidden in the prototype': (fn, n) =>
    void Object.defineProperty(fn.prototype, 'h', { value: n, configurable: true }),
  'another prototype': (fn, n) => void Reflect.set(fn, 'prototype', { n }),
  'another constructor': (fn, n) => void Reflect.set(fn.prototype, 'constructor', { n }),
  'no constructor': (fn) => void delete fn.prototype.constructor,
  'above the prototype': (fn) => void Object.setPrototypeOf(fn.prototype, above),
  'closed prototype': (fn) => void Object.freeze(fn.prototype),
};

/** Changes of a class alone. */
const changesOfClass: typeof changes = {
  member: (fn, n) => void Reflect.set(fn.prototype.method, 'q', n),
  'member again': (fn) => void delete fn.prototype.method.q,
  'name of a member': (fn, n) =>
    void Object.defineProperty(fn.prototype.method, 'name', { value: `name${n}` }),
  'no name of a member': (fn) => void delete fn.prototype.items.name,
  'above a member': (fn) => void Object.setPrototypeOf(fn.prototype.method, above),
  'frozen member': (fn) => void Object.freeze(fn.prototype.items),
  'closed member': (fn) => void Object.seal(fn.of),
  'static member': (fn, n) => void Reflect.set(fn.of, mark, { n }),
  'member in a static field': (fn, n) => void Reflect.set(fn.made, 'q', n),
  'prototype of a member': (fn, n) => void Reflect.set(fn.prototype.items.prototype, 'q', n),
  'half of an accessor': (fn, n) =>
    void Reflect.set(Object.getOwnPropertyDescriptor(fn.prototype, 'size')?.get ?? {}, 'q', n),
  'member elsewhere': (fn) => void Reflect.set(fn.prototype, Symbol.iterator, fn.prototype.items),
  'member of the other side': (fn) => void Reflect.set(fn, 'again', fn.prototype.method),
  'member put back': (fn) => {
    const { method } = fn.prototype;
    delete fn.prototype.method;
    Object.defineProperty(fn.prototype, 'method', {
      value: method,
      writable: true,
      configurable: true,
    });
  },
  'no member': (fn) => void delete fn.prototype.method,
  'other member': (fn, n) => void Reflect.set(fn.prototype, 'method', () => n),
  'static again': (fn, n) => {
    delete fn.count;
    Reflect.set(fn, 'count', n);
  },
};

/** Ways of a function: the callback, and its arguments. */
const places: Record<string, (fn: any) => [AnyFunction, unknown[]]> = {
  argument: (fn) => [(given: any) => stateOf(given), [fn]],
  'in an object': (fn) => [(given: any) => stateOf(given.at), [{ at: fn }]],
  captured: (fn) => {
    const callback = () => stateOf(fn);
    return [callback, []];
  },
  'called too': (fn) => {
    const callback = () => [typeof fn === 'function' ? fn.length : 0, stateOf(fn)];
    return [callback, []];
  },
  'captured by another': (fn) => {
    const inner = () => stateOf(fn);
    return [() => inner(), []];
  },
  'argument and captured': (fn) => {
    const callback = (given: any) => [given === fn, stateOf(fn)];
    return [callback, [fn]];
  },
  'in a captured object': (fn) => {
    const object = { at: fn };
    return [() => stateOf(object.at), []];
  },
  'beside what changes': (fn) => {
    let calls = 0;
    const callback = () => {
      calls += 1;
      return [calls > 0, stateOf(fn)];
    };
    return [callback, []];
  },
};

function attempt(body: () => void): void {
  try {
    body();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // it was frozen: nothing changed
  }
}

/** Calls with `fn` in a place: in the worker that had it before, and in one that never had it. */
function compare(
  warm: Peer,
  [callback, args]: [AnyFunction, unknown[]],
  what: string,
  peers = [warm, new Peer()],
): void {
  const home = Reflect.apply(callback, undefined, args);
  for (const peer of peers) {
    let there: unknown;
    try {
      there = peer.run(callback, args);
    } catch (error) {
      if (error instanceof CodedError && /cannot travel/.test(error.message)) continue;
      throw new Error(what, { cause: error });
    }
    assert.deepEqual(there, home, `${what}, in the ${peer === warm ? 'same' : 'new'} worker`);
  }
}

test('each change of a function of each kind arrives', () => {
  const names = Object.keys(places);
  let count = 0;
  for (const [kind, make] of Object.entries(kinds)) {
    const all = kind === 'class' ? { ...changes, ...changesOfClass } : changes;
    for (const [title, change] of Object.entries(all)) {
      count += 1;
      const place = String(names[count % names.length]);
      const warm = new Peer();
      const fn = make();
      const call = places[place]?.(fn);
      assert.ok(call);
      compare(warm, call, `${kind}, ${place}`, [warm]);
      attempt(() => change(fn, 5));
      compare(warm, call, `${kind}, ${place}, ${title}`);
    }
  }
});

function program(chance: Random): void {
  const warm = new Peer();
  const kind = chance.pick(Object.keys(kinds));
  const fn = kinds[kind]?.();
  const calls = Object.entries(places).map(([place, go]) => [place, go(fn)] as const);
  const all = kind === 'class' ? { ...changes, ...changesOfClass } : changes;
  const done = [kind];
  for (let step = 0; step < 6; step += 1) {
    const [place, call] = chance.pick(calls);
    compare(warm, call, [...done, place].join(', '));
    const title = chance.pick(Object.keys(all));
    attempt(() => all[title]?.(fn, step));
    done.push(title);
  }
}

test('changes in any order arrive in every place', (t) => {
  const chance = random(t);
  const runs = Number(process.env['MANYCORE_RUNS'] ?? 30);
  for (let run = 0; run < runs; run += 1) program(chance);
});

/** A class, and ways in which a callback uses its members beside it. */
const meetings: Record<string, (L: any) => [AnyFunction, unknown[]]> = {
  'a symbol of its prototype': (L) => {
    L.prototype[Symbol.iterator] = L.prototype.items;
    return [() => [L.prototype[Symbol.iterator] === L.prototype.items, [...new L()]], []];
  },
  'another key of its prototype': (L) => {
    L.prototype.again = L.prototype.method;
    return [() => [L.prototype.again === L.prototype.method, new L().again(3)], []];
  },
  'a static alias': (L) => {
    L.again = L.of;
    return [() => [L.again === L.of, L.again() instanceof L], []];
  },
  'half of an accessor': (L) => {
    L.read = Object.getOwnPropertyDescriptor(L.prototype, 'size')?.get;
    return [() => L.read === Object.getOwnPropertyDescriptor(L.prototype, 'size')?.get, []];
  },
  'a function in a static field': (L) => {
    L.again = L.made;
    return [() => [L.again === L.made, L.again()], []];
  },
  'a variable': (L) => {
    const method = L.prototype.method;
    return [() => [method === L.prototype.method, method(4)], []];
  },
  'a variable before its class': (L) => {
    const object = { method: L.prototype.method, L };
    return [() => object.method === object.L.prototype.method, []];
  },
  'an argument': (L) => [(method: any) => method === L.prototype.method, [L.prototype.method]],
  'an argument before its class': (L) => [
    (method: any, Given: any) => method === Given.prototype.method,
    [L.prototype.method, L],
  ],
  'an argument, where all else changes': (L) => {
    let calls = 0;
    const callback = (method: any) => {
      calls += 1;
      return [calls > 0, method === L.prototype.method];
    };
    return [callback, [L.prototype.method]];
  },
  'another function that compares': (L) => {
    const method = L.prototype.method;
    const isMethod = (given: unknown) => given === method;
    const state = { calls: 0 };
    return [() => [state.calls, isMethod(L.prototype.method)], []];
  },
  'a member with a property': (L) => {
    L.prototype.method.meta = { of: L };
    L.prototype.again = L.prototype.method;
    return [() => [L.prototype.again === L.prototype.method, L.prototype.again.meta.of === L], []];
  },
};

test('a member of a class is one function, however it is met', () => {
  for (const [title, meet] of Object.entries(meetings)) {
    const warm = new Peer();
    const call = meet(kinds['class']?.());
    for (const time of ['first', 'second']) compare(warm, call, `${title}, ${time}`);
  }
});

test('a member with a property keeps what only its class can give it', () => {
  class Above {
    method() {
      return 'above';
    }
  }
  class Below extends Above {
    #secret = 1;
    override method() {
      return `${super.method()} ${this.#secret}`;
    }
  }
  Reflect.set(Below.prototype.method, 'route', '/');
  const callback = () => [new Below().method(), Reflect.get(Below.prototype.method, 'route')];
  assert.deepEqual(new Peer().run(callback, []), ['above 1', '/']);
});
// biome-ignore-end lint/suspicious/noExplicitAny: what is changed is of any kind
