// The two roads to the state of a module: what a call imports of it, and what it captured of it. Modules are
// made by chance: each call gives what it gives at home, or is refused. `MANYCORE_RUNS=n` makes that many.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { inspect } from 'node:util';
import { CodedError } from '../../src/errors.js';
import { random, seeded } from '../support/index.js';
import { Peer } from './harness.js';
import { type RoadFiles, roadFiles } from './road-modules.js';

const peer = new Peer();
const folders = fileURLToPath(new URL('../../tmp/', import.meta.url));
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

/** Modules that neither this process nor the peer has loaded. */
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

test('a call with modules that it imports and captured is as at home', async (t) => {
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

test('an import of a variable shows what its module holds', async () => {
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

test('a class extends what the call has: a copy in one, an import in the next', async () => {
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

test('what never changes leaves a module an import', async () => {
  const user = `import { makeLimited } from './store.mjs'; export const call = () => [makeLimited(), []];`;
  const [fn] = (await load({ 'store.mjs': store, 'user.mjs': user })).call();
  assert.deepEqual(await peer.run(fn), [3, 1, 1]);
  assert.deepEqual(await peer.run(fn), [3, 1, 2], 'the state is that of the module in the host');
});

test('what of such a module cannot travel is refused, and what the code itself loads', async () => {
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
