// Modules of others whose exports run code of theirs when they are read: getters that throw or act, Proxies,
// objects without a prototype. Having loaded such a module must neither fail a call nor run any of that code.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { Peer } from '../harness.js';

const folder = mkdtempSync(join(tmpdir(), 'manycore-hostile-'));
const require = createRequire(join(folder, 'main.cjs'));
const peer = new Peer();
after(() => {
  peer.close();
  rmSync(folder, { recursive: true, force: true });
  Reflect.deleteProperty(globalThis, 'hostile');
});

/** Names of code that ran here because exports were read. */
const ran: string[] = [];
Object.defineProperty(globalThis, 'hostile', {
  value: (name: string) => {
    ran.push(name);
    throw new Error(`${name} ran`);
  },
  configurable: true,
});

const act = (name: string): string => `globalThis.hostile?.('${name}')`;
const traps = "'get has ownKeys getOwnPropertyDescriptor getPrototypeOf'.split(' ')";
const handler = `Object.fromEntries(${traps}.map((trap) =>
  [trap, (...args) => { globalThis.hostile?.(trap); return Reflect[trap](...args); }]))`;

/** Modules that export \`ok\`, which returns 7, if \`isUsable\`. */
const modules: Record<string, { readonly source: string; readonly isUsable?: false }> = {
  'a getter that throws': {
    source: `module.exports = { ok: () => 7, get worker() { return this.req.worker } };`,
  },
  'a getter that names a member of a variable': {
    source: `const state = { get now() { ${act('state')}; } };
      module.exports = { ok: () => 7, get now() { return state.now } };`,
  },
  'the same, as a compiler defines it': {
    source: `const state = { get now() { ${act('defined')}; } };
      exports.ok = () => 7;
      Object.defineProperty(exports, 'now', { enumerable: true, get: function () { return state.now; } });`,
  },
  "a compiler's name of a getter of a user": {
    source: `const lib_1 = require('./lib.cjs');
      exports.ok = () => 7;
      Object.defineProperty(exports, 'now', { enumerable: true, get: function () { return lib_1.now; } });`,
  },
  'a getter with side effects': {
    source: `exports.ok = () => 7; Object.defineProperty(exports, 'x', { get() { ${act('x')}; } });`,
  },
  'a variable before its time': {
    source: `exports.ok = () => 7;
      Object.defineProperty(exports, 'late', { enumerable: true, get: () => late });
      if (exports.ok() === 7) return;
      class late {}`,
  },
  'a getter that throws on a function': {
    source: `module.exports = () => 7; module.exports.ok = () => 7;
      Object.defineProperty(module.exports, 'x', { get: () => { ${act('on a function')}; } });`,
  },
  'a frozen object without a prototype': {
    source: `module.exports = Object.freeze({ __proto__: null, ok: () => 7, get x() { ${act('null')}; } });`,
  },
  'a getter in place of the exports': {
    source: `exports.ok = () => 7;
      Object.defineProperty(module, 'exports', { get() { ${act('module.exports')}; return {}; } });`,
    isUsable: false,
  },
  'a Proxy': { source: `module.exports = new Proxy({ ok: () => 7 }, ${handler});` },
  'a Proxy of a function': {
    source: `module.exports = new Proxy(Object.assign(() => 7, { ok: () => 7 }), ${handler});`,
  },
  'a revoked Proxy': {
    source: `const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); module.exports = proxy;`,
    isUsable: false,
  },
  'a revoked Proxy of a function': {
    source: `const { proxy, revoke } = Proxy.revocable(() => 7, {}); revoke(); module.exports = { ok: () => 7, proxy };`,
  },
};

writeFileSync(
  join(folder, 'lib.cjs'),
  `module.exports = { get now() { ${act('a getter of a library')}; } };`,
);

/** Loads the module at `file`, which may run its own code meanwhile. */
function load(file: string): object | undefined {
  try {
    return require(file);
  } catch {
    return undefined;
  } finally {
    ran.length = 0;
  }
}

let serial = 0;
for (const [title, { source, isUsable = true }] of Object.entries(modules)) {
  test(`${title} of a loaded module is left alone`, async (t) => {
    const file = join(folder, `hostile-${serial++}.cjs`);
    writeFileSync(file, source);
    const lib: unknown = load(file);
    t.after(() => Reflect.deleteProperty(require.cache, file));
    const add = (x: number): number => x + one;
    class Kept {
      readonly x = one;
    }
    const one = [1].length;
    assert.equal(await peer.run(() => add(1) + new Kept().x), 3);
    assert.equal((await peer.run(() => new Kept())).x, 1);
    if (isUsable) {
      const usable: { ok(): number } = Object(lib);
      const held = { usable };
      assert.equal(await peer.run(() => usable.ok() + held.usable.ok()), 14);
    }
    assert.deepEqual(ran, []);
  });
}

test('a class beside a variable before its time travels', async () => {
  const file = join(folder, 'early.cjs');
  const source = `exports.Held = class Held { n = 1; last() { return late } }; return; const late = 1;`;
  writeFileSync(file, source);
  const { Held } = require(file);
  const held = new Held();
  assert.equal(await peer.run(() => held.n + new Held().n), 2);
  assert.equal((await peer.run(() => new Held())).n, 1);
});

test('an ES module that is still loading does not fail a call', async () => {
  writeFileSync(
    join(folder, 'first.mjs'),
    `import * as second from './second.mjs';
export const seen = await globalThis.duringLoad?.(second);
`,
  );
  writeFileSync(
    join(folder, 'second.mjs'),
    `import * as first from './first.mjs';
export const late = () => first;
export const ok = () => 7;
`,
  );
  let codes: unknown;
  Object.defineProperty(globalThis, 'duringLoad', {
    configurable: true,
    value: async (second: { ok(): number; late(): object }) => {
      const first = second.late();
      codes = [
        await peer.run(() => second.ok()),
        await peer
          .run(() => typeof first)
          .catch((error: unknown) => Reflect.get(Object(error), 'code')),
      ];
    },
  });
  await import(pathToFileURL(join(folder, 'first.mjs')).href);
  Reflect.deleteProperty(globalThis, 'duringLoad');
  assert.deepEqual(codes, [7, 'TRANSFER_UNSUPPORTED']);
});
