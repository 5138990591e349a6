// The text of a program that spoils its own built-in objects, makes calls of all kinds, and prints the
// outcome of each. It reads results by their own properties alone. Run by hostile.test.ts.

/** The packed files, because a program loads them in half the time. */
export const packed = new URL('../../bundle/index.js', import.meta.url).href;

/** Makes all calls on `pool`, and returns the outcome of each as text, by its name. */
const calls = `
  const { getOwnPropertyDescriptor: own, getOwnPropertyNames: namesOf, hasOwn, getPrototypeOf } = Object;
  const { join } = Array.prototype;
  const { apply } = Reflect;
  import { isNativeError } from 'node:util/types';
  /** By own properties alone. */
  function shown(value, depth = 4) {
    if (typeof value === 'function') return 'function';
    if (typeof value !== 'object' || value === null || depth === 0) return typeof value + ' ' + String(value);
    const parts = [];
    let count = 0;
    const add = (text) => define(parts, count++, { value: text, writable: true, enumerable: true, configurable: true });
    const names = namesOf(value);
    for (let at = 0; at < names.length; at += 1) {
      const name = names[at];
      if (name === 'stack' && isNativeError(value)) continue;
      const part = own(value, name);
      add(name + ': ' + (hasOwn(part, 'value') ? shown(part.value, depth - 1) : 'accessor'));
    }
    return (isNativeError(value) ? 'error' : '') + '{' + apply(join, parts, [', ']) + '}';
  }
  const define = (target, key, descriptor) => {
    const made = { __proto__: null };
    for (const name of namesOf(descriptor)) made[name] = descriptor[name];
    return Object.defineProperty(target, key, made);
  };
  let changing = 5;
  const kept = Object.freeze({ list: [1, 2], more: { part: 3 } });
  class Point { static unit = 'cm'; constructor(x) { this.x = x; } get double() { return this.x * 2; } area() { return this.x ** 2; } }
  class Closed { #secret = 1; }
  const withAccessor = define({}, 'part', { get() { return changing; }, set: undefined, enumerable: true, configurable: true });
  const withHidden = define({ show: () => withHidden.hidden }, 'hidden', { value: 7, writable: false, enumerable: false, configurable: false });
  function named() { return named.extra; }
  named.extra = { part: 2 };
  const bound = function (more) { return this.base + more; }.bind({ base: 1 }, 2);
  async function all(stream) {
    const found = [];
    for await (const each of stream) found[found.length] = each;
    return found;
  }
  const light = {
    __proto__: null,
    'a sum': (pool) => pool.run((a, b) => a + b, 1, 2),
    'a changing capture': (pool) => pool.run(() => changing + kept.list[1] + kept.more.part),
    'an object': (pool) => pool.run((o) => ({ ...o, keys: Object.keys(o) }), { x: 1, list: [1, { z: 2 }], map: new Map([[1, 2]]), bytes: new Uint8Array([1]) }),
    'descriptors': (pool) => pool.run((o) => Object.getOwnPropertyDescriptors(o), { x: 1 }),
    'special parts': (pool) => pool.run((o) => [o.f(2), o.point.double, o.frozen.list.length, Object.isFrozen(o.frozen)], { f: (x) => x * changing, point: new Point(3), frozen: kept }),
    'an accessor': (pool) => pool.run(() => [withAccessor.part, Object.keys(Object.getOwnPropertyDescriptor(withAccessor, 'part'))]),
    'a hidden property': (pool) => pool.run((o) => [o.show(), Object.getOwnPropertyDescriptor(o, 'hidden')], withHidden),
    'a class': (pool) => pool.run(() => [new Point(4).area(), Point.unit, Object.getOwnPropertyNames(Point.prototype)]),
    'an instance': async (pool) => { const back = await pool.run((p) => { p.x += 1; return p; }, new Point(1)); return [getPrototypeOf(back) === Point.prototype, back.x]; },
    'properties of a function': (pool) => pool.run(() => [named().part, named.name, Object.getOwnPropertyNames(named)]),
    'a bound function': (pool) => pool.run(() => bound(3)),
    'an error': (pool) => pool.run(() => { throw Object.assign(new RangeError('bad', { cause: 'why' }), { code: 'E', info: { a: 1 } }); }),
    'an error of a class': (pool) => pool.run(() => { class Mine extends Error { name = 'Mine'; } throw new Mine('mine'); }),
    'a thrown object': (pool) => pool.run(() => { throw { plain: 1 }; }),
    'errors in one': (pool) => pool.run(() => { throw new AggregateError([new TypeError('a')], 'many'); }),
    'an error as a value': (pool) => pool.run((e) => [e, e.message, e.cause], new TypeError('v', { cause: { a: 1 } })),
    'a generator': async (pool) => all(await pool.run(function* () { yield 1; yield { a: 2 }; })),
    'an async generator': async (pool) => all(await pool.run(async function* (n) { for (let i = 0; i < n; i += 1) yield [i]; }, 2)),
    'a generator that throws': async (pool) => all(await pool.run(function* () { yield 1; throw new RangeError('mid'); })),
    'a map': (pool) => pmap([1, 2, 3], (x) => ({ x: x * changing }), { pool }),
    'a map that fails': (pool) => pmap([1, 2, 3], (x) => { if (x === 2) throw new RangeError('item'); return x; }, { pool }),
    'a map as a stream': (pool) => all(pmap.stream([1, 2], (x) => [x], { pool })),
    'a map of typed items': async (pool) => [...await pmap(new Float64Array([1, 2]), (x) => x * 2, { pool })],
    'a map in the caller': () => pmap([1, 2], (x) => x + 1, { channel: 'inline' }),
    'a refused argument': (pool) => pool.run((x) => x, { deep: new WeakMap() }),
    'a refused capture': (pool) => { const held = { deep: Promise.resolve(1) }; return pool.run(() => held); },
    'a refused instance': (pool) => pool.run((x) => x, new Closed()),
    'a refused result': (pool) => pool.run(() => new WeakSet()),
    'a refused option': (pool) => pool.with({ timeoutMs: 'x' }),
    'an option of no known name': () => new Pool({ sizes: 1 }),
    'an abort before': (pool) => pool.with({ signal: AbortSignal.abort('stop') }).run(() => 1),
    'a URL and a pattern': (pool) => pool.run((u, r) => [u.href, r.source], new URL('http://a/b?c=1'), /a+/g),
    'a cycle': async (pool) => { const o = {}; o.self = o; const back = await pool.run((x) => x, o); return back.self === back; },
    'the default pool': () => run((a) => a + 1, 1),
  };
  const heavy = {
    __proto__: null,
    'a time limit': (pool) => pool.with({ timeoutMs: 20 }).run(() => { for (;;); }),
    'an abort': async (pool) => { const abort = new AbortController(); const call = pool.with({ signal: abort.signal }).run(() => new Promise(() => {})); abort.abort('stop'); return call; },
    'a worker that exits': (pool) => pool.run(() => process.exit(3)),
    'the worker after it': (pool) => pool.run(() => 'alive'),
  };
  /** The outcome of each call, as text. */
  async function make(table, pool) {
    const came = { __proto__: null };
    for (const name of namesOf(table)) {
      let text;
      try {
        text = 'gave ' + shown(await table[name](pool));
      } catch (error) {
        text = 'threw ' + shown(error);
      }
      came[name] = text.replace(/worker \\d+(, process \\d+)?/, 'the worker');
    }
    return came;
  }
  const { stringify } = JSON;
  const print = (what, came) => void process.stdout.write(stringify({ __proto__: null, what, came }) + '\\n');`;

const load = `const { Pool, pmap, run } = await import(${JSON.stringify(packed)});`;

export interface HostileProgram {
  readonly worker: 'process' | 'thread';
  /** Statements before the library is loaded. */
  readonly before?: string;
  /** Statements after it is loaded. */
  readonly after?: string;
  /**
   * Text of an object of functions, each of which changes something and returns a function that changes it
   * back.
   */
  readonly steps?: string;
  /** Statements in each worker, before its first call. */
  readonly setup?: string;
}

/**
 * Prints a line of `{ what, came }` with the outcomes of all calls by name, including those that cost a
 * worker. Then, during each step, one line without those.
 */
export function hostileProgram(given: HostileProgram): string {
  const { worker, before = '', after = '', steps = '{}', setup } = given;
  const set = setup === undefined ? '' : `setup: () => { ${setup} }`;
  const use = `
    const pool = new Pool({ size: 1, worker: '${worker}', graceMs: 20, ${set} });
    // Modules that Node loads at first use may fail to load during a step.
    print('all', { ...await make(light, pool), ...await make(heavy, pool) });
    const steps = ${steps};
    for (const what of namesOf(steps)) {
      const undo = steps[what]();
      let came;
      try {
        came = await make(light, pool);
      } finally {
        undo();
      }
      print(what, came);
    }
    await pool.close();`;
  return [calls, before, load, after, use, 'process.exit(0);'].join('\n');
}
