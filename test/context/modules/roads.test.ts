// The two roads to the state of a module: a call's imports of it, and its captures from it. Modules are
// random: each call gives the same as at home, or is refused. `MANYCORE_RUNS=n` makes that many.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { inspect } from 'node:util';
import { CodedError } from '../../../src/errors.js';
import { random, seeded } from '../../support/index.js';
import { Peer } from '../harness.js';
import { type RoadFiles, roadFiles } from './road-modules.js';

const peer = new Peer();
const folders = fileURLToPath(new URL('../../../tmp/', import.meta.url));
mkdirSync(folders, { recursive: true });
const folder = mkdtempSync(join(folders, 'roads-'));
after(() => {
  peer.close();
  rmSync(folder, { recursive: true, force: true });
});

interface User {
  call(at?: number): readonly [fn: (...args: unknown[]) => unknown, args: readonly unknown[]];
}

let serial = 0;

/** Loads modules that neither this process nor the peer has loaded. */
async function load(files: RoadFiles): Promise<User> {
  serial += 1;
  const own = join(folder, String(serial));
  mkdirSync(own);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(own, name), text);
  return import(pathToFileURL(join(own, 'user.mjs')).href);
}

const shown = (value: unknown): string => inspect(value, { depth: 8, breakLength: Infinity });

/** `undefined`: as at home; else the refusal. */
async function compare(files: RoadFiles, where: string): Promise<CodedError | undefined> {
  const [fn, args] = (await load(files)).call();
  const answer = peer.run(fn, ...args).then(shown, (error: unknown) => {
    const isRefusal = error instanceof CodedError && /\n {2}path: /.test(error.message);
    return isRefusal ? error : `threw ${shown(error)}`;
  });
  const home = shown(await fn(...args));
  const there = await answer;
  if (there instanceof CodedError) return there;
  const text = Object.entries(files).map(([name, each]) => `// ${name}\n${each}`);
  assert.equal(there, home, `${where}\n${there === home ? '' : text.join('\n')}`);
  return undefined;
}

const programs = Number(process.env['MANYCORE_RUNS'] ?? 6);

test('a call with modules that it imports and captured gives the same as at home', async (t) => {
  const { seed } = random(t);
  let refused = 0;
  for (let each = seed; each < seed + programs; each += 1) {
    const refusal = await compare(
      roadFiles(seeded(each)),
      `MANYCORE_RUNS=1 MANYCORE_SEED=${each >>> 0}`,
    );
    if (refusal !== undefined) refused += 1;
    if (process.env['MANYCORE_SHOW'] && refusal)
      console.log(each >>> 0, refusal.message.slice(0, 400));
  }
  t.diagnostic(`${programs - refused} calls as at home, ${refused} refused`);
  assert.ok(programs < 50 || refused < programs, 'some travel');
});

const store = `const cache = new Map(); let count = 0; const limit = 3; const names = Object.freeze(['a']);
class Tally { static n = 0; static up() { return ++Tally.n } }
export function put(key) { cache.set(key, 1); count += 1; Tally.up() }
export const sizes = () => [cache.size, count];
export const same = (value) => value === names;
export const make = () => () => { put('a'); return [cache.size, count] };
export const makeTally = () => () => { put('a'); return Tally.n };
export const makeLimited = () => () => { put('limited'); return [limit, names.length, sizes()[1]] };
export const makeSame = () => () => same(names);
export const box = { job() { put('b'); return cache.size } };
export class Job { run() { put('c'); return cache.size } }
`;
const compiled = `exports.put = put; function put(key) { cache.set(key, 1) }
const cache = new Map();
exports.make = () => () => { (0, exports.put)('a'); return cache.size };
exports.same = (f) => f === exports.put;
let other = 0; exports.up = () => ++other; exports.makeUp = () => () => { (0, exports.same)(1); return ++other };
`;
const through = `import { put } from './store.mjs';
import compiled from './compiled.cjs';
export const twice = () => { put(1); put(2) };
export const other = (key) => compiled.put(key);
`;
const imports = `import * as store from './store.mjs';
import { put, sizes, Job } from './store.mjs';
import compiled from './compiled.cjs';
import { twice, other } from './through.mjs';
`;

const cases: Readonly<Record<string, string>> = {
  'a function that a module made': '[store.make(), []]',
  'a method of an object that it exports': '[store.box.job, []]',
  'a class that it keeps to itself': '[store.makeTally(), []]',
  'a constant that is only compared': '[store.makeSame(), []]',
  'an export that the callback imports': `[((job) => () => [put('z'), job()])(store.make()), []]`,
  'an export of its namespace': `[((job) => () => [store.put('z'), job()])(store.make()), []]`,
  'the module as argument': `[((job) => (it) => [job(), it.up(), job()])(compiled.makeUp()), [compiled]]`,
  'an export as argument': `[((job) => (put) => [put('z'), job()])(store.make()), [put]]`,
  'the function as argument': `[(job) => [put('z'), sizes(), job()], [store.make()]]`,
  'the function in an argument': `[({ job }) => [put('z'), sizes(), job()], [{ job: store.make() }]]`,
  'an instance as argument': '[((job) => (it) => [it.run(), job()])(store.make()), [new Job()]]',
  'both as arguments': '[(it, job) => [it.run(), job()], [new Job(), store.make()]]',
  'an export of another module': '[((job) => () => [twice(), job()])(store.make()), []]',
  'code of a compiler': `[((job) => () => [other('z'), job(), compiled.same(compiled.put)])(compiled.make()), []]`,
};

for (const [title, call] of Object.entries(cases)) {
  test(`one call has one state of a module: ${title}`, async () => {
    const user = `${imports}export const call = () => ${call};`;
    const files = { 'store.mjs': store, 'compiled.cjs': compiled, 'through.mjs': through };
    assert.equal(await compare({ ...files, 'user.mjs': user }, title), undefined);
  });
}

const lists: RoadFiles = {
  'esm.mjs': `export const list = []; export const state = { list: [], deep: { list: [] } }; const inner = []; const other = [];
export const put = (x) => { list.push(x); state.list.push(x); state.deep.list.push(x); inner.push(x) };
export class Kept { static list = list; static own = []; static put(x) { Kept.own.push(x) } }
export const take = () => inner; export const takeOther = () => other; export const size = () => [list.length, inner.length];
export class Color { static RED = new Color('red'); constructor(name) { this.name = name } is() { return this === Color.RED } }
export function memo() { memo.n = (memo.n ?? 0) + 1; return memo.n }
function count() { count.n = (count.n ?? 0) + 1; return count.n } const counters = { count };
export const tell = () => count(); export const makeTold = () => () => [counters.count(), counters.count.n];
export const idle = () => other.length; let changing = []; export const add = (x) => changing.push(x);
export const current = () => changing; export const reset = () => { changing = [] };
let last; export class Job { constructor() { last = this } run() { return last !== undefined } }; export const frozen = Object.freeze([1]); export default { put, list };`,
  'object.cjs': `const list = []; const inner = []; const put = (x) => { list.push(x); inner.push(x) };
module.exports = { list, put, take: () => inner };`,
  'members.cjs': `exports.list = []; exports.put = (x) => { exports.list.push(x) };`,
  'data.cjs': 'module.exports = { list: [] };',
  'between.cjs': `const { list } = require('./object.cjs'); const members = require('./members.cjs'); const data = require('./data.cjs');
const held = members.list; exports.make = () => () => [list.length, held.length];
exports.put = (x) => data.list.push(x);`,
  'between.mjs': `import { list, put, state } from './esm.mjs'; export * from './esm.mjs';
const box = { list }; const { list: second } = state; export const make = () => () => [box.list.length, second.length];
export const twice = (x) => { put(x); put(x) };`,
};
const ofLists = `import * as esm from './esm.mjs'; import { list, state, put, Kept, take, size } from './esm.mjs';
import object from './object.cjs'; import members from './members.cjs'; import data from './data.cjs';
import between from './between.cjs'; import { make, twice, list as again } from './between.mjs';
import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);
`;

/** Holders of an object: statements, and a call that changes the object by an import. */
const holders: Readonly<Record<string, readonly [statements: string, call: string]>> = {
  'an object': ['const box = { list };', '() => [put(1), box.list.length, size()]'],
  'an array in an object': ['const box = { at: [list] };', '() => [put(1), box.at[0].length]'],
  'a Map': [`const box = new Map([['a', list]]);`, `() => [put(1), box.get('a').length]`],
  'a Set': ['const box = new Set([list]);', '() => [put(1), [...box][0].length]'],
  'a static': ['class Box { static list = list }', '() => [put(1), Box.list.length]'],
  'an instance': [
    'class Box { list = list } const box = new Box();',
    '() => [put(1), box.list.length]',
  ],
  'a closure': ['const f = ((held) => () => held.length)(list);', '() => [put(1), f()]'],
  'a variable that is assigned': ['let held = []; held = list;', '() => [put(1), held.length]'],
  'a property of an export': ['const { list: held } = state;', '() => [put(1), held.length]'],
  'one further down': ['const held = state.deep.list;', '() => [put(1), held.length]'],
  'a static of an export': ['const held = Kept.own;', '() => [Kept.put(1), held.length]'],
  'an export of a namespace': ['const held = esm.list;', '() => [esm.put(1), held.length]'],
  'a default export': ['const held = esm.default.list;', '() => [esm.default.put(1), held.length]'],
  'what a function gives': ['const held = take();', '() => [put(1), held.length]'],
  'what import() gives': [
    `const { list: held } = await import('./esm.mjs');`,
    '() => [put(1), held.length]',
  ],
  'what another module passes on': ['const box = { again };', '() => [twice(1), box.again.length]'],
  'a change by another module': ['const box = { list };', '() => [twice(1), box.list.length]'],
  'a variable that may change': ['const held = esm.current();', '() => [esm.add(1), held.length]'],
  'an import before': [
    'const box = { list };',
    '() => [box.list.length, list.push(1), box.list.length]',
  ],
  'a module between': ['const f = make();', '() => [put(1), f()]'],
  'a function that has it': ['const box = { memo: esm.memo };', '() => [box.memo(), esm.memo()]'],
  'an instance of a static': [
    'const held = esm.Color.RED;',
    '() => [held === esm.Color.RED, held.is()]',
  ],
  'an import beside': ['const box = { list };', '() => [list.push(1), box.list.length]'],
  'an export of CommonJS': ['const held = object.list;', '() => [object.put(1), held.length]'],
  'a property of exports': [
    'const { list: held } = members;',
    '() => [members.put(1), held.length]',
  ],
  'what CommonJS gives': ['const held = object.take();', '() => [object.put(1), held.length]'],
  'a module of data': ['const box = { data };', '() => [between.put(1), box.data.list.length]'],
  'what require gives': [
    `const { list: held, put: change } = require('./object.cjs');`,
    '() => [change(1), held.length]',
  ],
  'a function that counts its calls': ['const f = esm.makeTold();', '() => [esm.tell(), f()]'],
  'CommonJS between': ['const f = between.make();', '() => [object.put(1), members.put(1), f()]'],
};

for (const [title, [statements, call]] of Object.entries(holders)) {
  test(`one call has one object of a module: held by ${title}`, async () => {
    const user = `${ofLists}${statements} export const call = () => [${call}, []];`;
    assert.equal(await compare({ ...lists, 'user.mjs': user }, title), undefined);
  });
}

/** Calls that import the modules: their state is that of the worker, call after call. */
const imported: Readonly<Record<string, readonly [statements: string, call: string]>> = {
  'the module in an object': ['const box = { esm };', '() => [box.esm.put(1), esm.size()[0]]'],
  'the exports in an object': [
    'const box = { object };',
    '() => [object.put(1), box.object.list.length]',
  ],
  'functions in an object': ['const box = { put, size };', '() => [box.put(1), size()[0]]'],
  'a class in an object': ['const box = { Kept };', '() => [Kept.put(1), box.Kept.own.length]'],
  'frozen data': ['const box = { held: esm.frozen };', '() => [put(box.held[0]), size()[0]]'],
  'data of its own': ['const box = { list: [] };', '() => [put(box.list.length), size()[0]]'],
  'the instance that a module made last': [
    'const job = new esm.Job();',
    '() => [put(job.run()), size()[0]]',
  ],
  'what the import does not use': [
    'const held = esm.takeOther();',
    '() => [put(held.length), size()[0]]',
  ],
};

for (const [title, [statements, call]] of Object.entries(imported)) {
  test(`a module stays an import beside ${title}`, async () => {
    const user = `${ofLists}${statements} export const call = () => [${call}, []];`;
    const [fn] = (await load({ ...lists, 'user.mjs': user })).call();
    const first = await peer.run(fn);
    assert.deepEqual(
      [first, await peer.run(fn)].map((each) => Object(each)[1]),
      [1, 2],
    );
  });
}

test('an import of a variable shows the present value in its module', async () => {
  const files = {
    'count.mjs': `export let count = 0; export const up = () => { count += 1; return count };
let inner = 5; export { inner as renamed, inner as default }; export const down = () => { inner -= 1 };
let value = 1; export const change = () => { value += 1 }; export { value };`,
    'again.mjs': `export { count as total, up } from './count.mjs'; export * from './count.mjs';`,
    'user.mjs': `import { total, up, renamed as left, down } from './again.mjs';
import inner from './count.mjs'; import { count, value } from './count.mjs';
class Reader { read = () => count; static get total() { return [total, \`\${left}\`, { inner }] } }
const reader = { read() { return [count, Reader.total, value] } };
export const call = () => [() => { const out = [count]; up(); down(); out.push(count, total, left, inner, new Reader().read());
  return [out, reader.read(), up(), reader.read(), ((count) => count)(7)] }, []];`,
  };
  assert.equal(await compare(files, 'live'), undefined);
  const copied = {
    'count.mjs': `export let count = 0; export const up = () => { count += 1 };
export const make = () => () => { up(); return count };`,
    'user.mjs': `import { make, count } from './count.mjs'; const job = make();
export const call = () => [() => [job(), count], []];`,
  };
  const refusal = await compare(copied, 'live and copied');
  assert.equal(refusal?.code, 'TRANSFER_SHARED_VARIABLE');
  assert.match(refusal.message, /export a function that returns it\n {2}path: /);
});

test('a class extends a copy in one call and the import in the next', async () => {
  const files = {
    'store.mjs': `let count = 0; export class Base { up() { return ++count } }
export const make = () => () => count;`,
    'user.mjs': `import { Base, make } from './store.mjs'; import * as store from './store.mjs';
const sub = () => class Sub extends store.Base { isOne() { return this instanceof Base } };
let Sub; Sub = sub(); const job = make(); const box = { Sub };
export const call = (at) => at === 0
  ? [(it) => [it instanceof Base, it.isOne(), it.up() > 0], [new Sub()]]
  : [(it) => [it instanceof Base, it.isOne(), it instanceof box.Sub, it.up(), job()], [new Sub()]];`,
  };
  const user = await load(files);
  for (const at of [0, 1, 0, 1]) {
    const [fn, args] = user.call(at);
    const expected = at === 0 ? [true, true, true] : [true, true, true, 1, 1];
    assert.deepEqual(await peer.run(fn, ...args), expected);
  }
});

test('a module stays an import beside values that never change', async () => {
  const user = `import { makeLimited } from './store.mjs'; export const call = () => [makeLimited(), []];`;
  const [fn] = (await load({ 'store.mjs': store, 'user.mjs': user })).call();
  assert.deepEqual(await peer.run(fn), [3, 1, 1]);
  assert.deepEqual(await peer.run(fn), [3, 1, 2], 'the state is that of the module in the worker');
});

test('a part of a copied module that cannot travel is refused, and so is one that the code loads', async () => {
  const files = {
    'store.mjs': `const cache = new WeakMap(); let count = 0;
export const put = (key) => { cache.set(key, 1); return ++count };
export const make = () => () => { put({}); return count };`,
    'user.mjs': `import { make } from './store.mjs'; export const call = () => [make(), []];`,
  };
  const refusal = await compare(files, 'a WeakMap');
  assert.equal(refusal?.code, 'TRANSFER_UNSUPPORTED');
  assert.match(refusal.message, /use a Map or Set[^]* {2}path: .*put.*variable cache/);
  const loads = `import { make } from './store.mjs'; const job = make();
export const call = () => [async () => { (await import('./store.mjs')).put('z'); return job() }, []];`;
  const other = await compare({ 'store.mjs': store, 'user.mjs': loads }, 'import()');
  assert.equal(other?.code, 'TRANSFER_SHARED_VARIABLE');
  assert.match(other.message, /import the module at the top[^]* {2}path: /);
});
