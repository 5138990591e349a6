// Graphs of objects that a function has both captured and as arguments. One object at home is one in the
// worker, by whichever way it was sent, so the others see a change by one name. Random; `MANYCORE_RUNS=n`
// makes that many.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AnyFunction } from '../../../src/context/index.js';
import { type Random, random, seeded } from '../../support/index.js';
import { runElsewhere } from '../elsewhere.js';

/** First lines of each module of programs: `walk` returns identities, in the order of the first visit. */
const prelude = `
class Point { constructor(at) { this.at = at } get twice() { return this.at } }
class Bag extends Map { label = 'bag' }
const bytes = new ArrayBuffer(16);
function link(from, to, key) {
  if (from instanceof Map) key.length === 1 ? from.set(key, to) : from.set(to, key);
  else if (from instanceof Set) from.add(to);
  else if (Array.isArray(from)) from.push(to);
  else if (typeof from === 'function' || (typeof from === 'object' && !ArrayBuffer.isView(from) && from !== bytes)) from[key] = to;
}
function change(value) {
  try {
    if (value instanceof Map) value.set('new', 1);
    else if (Array.isArray(value)) value.push(2);
    else if (value !== bytes) value.changed = 3; // a view brings the bytes of its buffer alone
  } catch {} // a symbol, or frozen
}
const freeze = (value) => value === bytes || ArrayBuffer.isView(value) || Object.freeze(value);
function walk(roots) {
  const seen = new Map(), lines = [];
  const see = (value) => {
    if (value === null || (typeof value !== 'object' && typeof value !== 'function' && typeof value !== 'symbol'))
      return String(value);
    if (seen.has(value)) return '#' + seen.get(value);
    const id = seen.size;
    seen.set(value, id);
    const parts = [Object.prototype.toString.call(value), value?.constructor?.name];
    if (typeof value === 'symbol') parts.push(value.description);
    else {
      if (typeof value === 'function') parts.push(value().map(see).join());
      if (value instanceof Map) parts.push([...value].map(([k, v]) => see(k) + '=>' + see(v)).join());
      if (value instanceof Set) parts.push([...value].map(see).join());
      if (ArrayBuffer.isView(value)) parts.push(see(value.buffer), value.length);
      else for (const key of Reflect.ownKeys(value)) if (!/^(length|name|prototype|stack)$/.test(String(key))) parts.push(String(key) + ':' + see(value[key]));
      parts.push(Object.isFrozen(value));
    }
    lines[id] = parts.join(' ');
    return '#' + id;
  };
  roots.forEach(see);
  return lines.join('\\n');
}
`;

const kinds = [
  ...['{}', '[]', 'new Map()', 'new Set()', 'new Point(1)', 'new Bag()', 'Object.create(null)'],
  ...[
    "Symbol('s')",
    'new Uint8Array(bytes, 4, 2)',
    'bytes',
    'new Date(5)',
    "new Error('e')",
    '/x/g',
  ],
];

/** A function without parameters that returns `[fn, args]`. */
function program(dice: Random): string {
  const count = dice.integer(3, 9);
  const names = Array.from({ length: count }, (_, at) => `n${at}`);
  const some = (most: number): string[] =>
    Array.from({ length: dice.integer(0, most) }, () => dice.pick(names));
  const lines = names.map((name, at) => {
    const isFunction = at > 0 && dice.next() < 0.2;
    const inner = () => dice.pick(names.slice(0, at));
    const code = dice.pick([
      () => `() => [${inner()}, ${inner()}]`,
      () => `function () { return [this, ...arguments, ${inner()}] }.bind(${inner()}, ${inner()})`,
    ]);
    return `const ${name} = ${isFunction ? code() : dice.pick(kinds)};`;
  });
  for (let at = 0; at < count * 2; at += 1)
    lines.push(`link(${dice.pick(names)}, ${dice.pick(names)}, '${dice.pick(['a', 'bb', 'c'])}');`);
  if (dice.next() < 0.3) lines.push(`freeze(${dice.pick(names)});`);
  const captured = some(4);
  const args = dice.next() < 0.3 ? [`[${some(3).join()}]`, ...some(3)] : some(4);
  const given = args.map((_, at) => `g${at}`);
  const all = [...captured, ...given];
  const changes = [...captured, ...given].filter(() => dice.next() < 0.4);
  lines.push(`const fn = (${given.join()}) => {
  const before = walk([${all.join()}]);
  [${changes.join()}].forEach(change);
  return before + '\\n--\\n' + walk([${all.join()}]);
};`);
  return `() => {\n${lines.join('\n')}\nreturn [fn, [${args.join()}]];\n}`;
}

const programsPerModule = 100;

test('an object that function and arguments share is one object in the worker, or refused', async (t) => {
  const { seed } = random(t);
  const runs = Number(process.env['MANYCORE_RUNS'] ?? 200);
  let same = 0;
  for (let from = 0; from < runs; from += programsPerModule) {
    const texts = Array.from({ length: Math.min(programsPerModule, runs - from) }, (_, at) =>
      program(seeded(seed + from + at)),
    );
    const module = `${prelude}export const programs = [\n${texts.join(',\n')}\n];//${from}`;
    const { programs } = await import(`data:text/javascript,${encodeURIComponent(module)}`);
    for (const [at, make] of programs.entries()) {
      const where = `MANYCORE_RUNS=1 MANYCORE_SEED=${seed + from + at}\n${texts[at]}`;
      const [fn, args] = make();
      let elsewhere: unknown;
      try {
        elsewhere = runElsewhere(fn, args);
      } catch (error) {
        const isRefusal = /^TRANSFER_/.test(codeOf(error)) && /\n {2}path: /.test(String(error));
        assert.ok(isRefusal, `${String(error)}\n${where}`);
        continue;
      }
      assert.equal(elsewhere, Reflect.apply(fn, undefined, args), where);
      same += 1;
    }
  }
  t.diagnostic(`${same} of ${runs} calls as at home, the others refused`);
  assert.ok(same > runs * 0.8);
});

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** A URL and its parameters: the callback, and its arguments. */
const urls: Record<string, (u: URL, s: URLSearchParams) => [AnyFunction, unknown[]]> = {
  'both captured': (u, s) => [
    () => {
      s.set('x', '2');
      return u.href;
    },
    [],
  ],
  'the parameters before': (u, s) => {
    const both = { s, u };
    return [
      () => {
        both.s.set('x', '2');
        return [both.u.href, both.u.searchParams === both.s];
      },
      [],
    ];
  },
  'both given': (u, s) => [
    (given: URLSearchParams, url: URL) => {
      given.set('x', '2');
      return [url.href, url.search];
    },
    [s, u],
  ],
  'the parameters given': (u, s) => [
    (given: URLSearchParams) => {
      given.set('x', '2');
      return [u.href, u.searchParams === given];
    },
    [s],
  ],
  'the URL given': (u, s) => [
    (given: { u: URL }) => {
      given.u.search = '?y=3';
      return [String(s), given.u.searchParams === s];
    },
    [{ u }],
  ],
  'the parameters alone': (_, s) => [
    () => {
      s.append('x', '2');
      return String(s);
    },
    [],
  ],
  'two URLs': (u, s) => {
    const other = new URL(u.href);
    return [
      () => {
        s.set('x', '2');
        return [u.href, other.href];
      },
      [],
    ];
  },
};

test('a URL and its searchParams change together in the worker', () => {
  for (const [title, make] of Object.entries(urls)) {
    const parts = (): [URL, URLSearchParams] => {
      const url = new URL('http://a/?x=1');
      return [url, url.searchParams];
    };
    const [fn, args] = make(...parts());
    const there = runElsewhere(fn, args);
    const [same, given] = make(...parts());
    assert.deepEqual(there, Reflect.apply(same, undefined, given), title);
  }
});
