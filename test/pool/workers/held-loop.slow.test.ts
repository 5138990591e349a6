// Programs that only wait for something of manycore's, with nothing else alive in their event loop, go on
// when it has come. Otherwise Node ends them in the middle: exit code 13, or 0 in CommonJS.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ways } from '../calls/ways.js';
import { programFolder, runNode } from '../programs.js';

/** A worker that ends by itself after its answer, unheard. */
const lose = `await pool.run(() => { setImmediate(() => process.exit(3)); });`;

/** Programs, one line each; `pool` is defined. */
const waits: Readonly<Record<string, string>> = {
  'warm(n)': 'await pool.warm(2);',
  'warm() while workers run': 'await pool.warm(1); await pool.warm(2);',
  'warm() after a worker was lost': `await pool.warm(2); ${lose} await pool.warm(2);`,
  'warm() while a worker leaves':
    'await pool.warm(1); const warm = pool.warm(2); pool.recycle(); await warm;',
  'warm() of a pool that grows':
    'pool.resize(1); await pool.warm(1); pool.resize(2); await pool.warm(2);',
  'warm() of two callers': 'await Promise.all([pool.warm(1), pool.warm(2)]);',
  'recycle() of idle workers': 'await pool.warm(2); await pool.recycle(); await pool.run(() => 1);',
  'recycle() while workers start': 'pool.warm(1).catch(() => {}); await pool.recycle();',
  'recycle() of a worker that was lost': `${lose} await pool.recycle();`,
  'hasRoom() of a full pool':
    'const calls = [1, 2, 3, 4].map((n) => pool.run((x) => x, n)); await pool.hasRoom(); await Promise.all(calls);',
  'close() of idle workers': 'await pool.warm(1); await pool.close();',
  'close() while workers start': 'pool.warm(1).catch(() => {}); await pool.close();',
  'close() beside a call': 'pool.run(() => 1); await pool.close({ timeoutMs: 30_000 });',
  'close() of a worker that was lost': `${lose} await pool.close();`,
  'destroy() beside a call': 'pool.run(() => 1).catch(() => {}); await pool.destroy();',
  'destroy() of a worker that was lost': `${lose} await pool.destroy();`,
  'runOnEach()': 'await pool.warm(1); await pool.runOnEach(() => 1);',
  'a call after a worker was lost': `${lose} await pool.with({ retry: 1 }).run(() => 1);`,
  'a stream that is left':
    'for await (const x of await pool.run(function* () { yield 1; yield 2; })) break;',
  'a stream that waits':
    'for await (const x of await pool.run(async function* () { yield 1; await new Promise(setImmediate); yield 2; })) x;',
  'pmap()': 'await pmap([1, 2, 3], (x) => x, { pool });',
  'pmap.stream()': 'for await (const x of pmap.stream([1, 2, 3], (x) => x, { pool })) x;',
  'shared()': 'const bytes = shared(1e5); await pool.run((given) => given.byteLength, bytes);',
};

/** Each as one program: what it did is on its output. */
function programText(options: string): string {
  const cases = Object.entries(waits).map(
    ([name, text]) =>
      `await (async () => { const pool = new Pool(${options}); ${text}
        console.log(${JSON.stringify(name)}); await pool.destroy(); })();`,
  );
  return `(async () => {\n${cases.join('\n')}\n})();`;
}

const names = 'Pool, pmap, shared';
const [module, script] = [
  { file: 'program.mjs', head: `import { ${names} } from 'manycore';\nawait ` },
  { file: 'program.cjs', head: `const { ${names} } = require('manycore');\n` },
] as const;

for (const { name, worker, channel } of ways) {
  const options = JSON.stringify({ worker, channel, size: 2, maxWaitingTasks: 2 });
  const { file, head } = worker === 'process' ? module : script;
  test(`${name}: ${file} goes on after each wait`, async (t) => {
    const folder = programFolder(t, { [file]: head + programText(options) });
    const { lines, stderr, exitCode } = await runNode(folder, [file]);
    assert.deepEqual(lines, Object.keys(waits), stderr);
    assert.equal(exitCode, 0, stderr);
  });
}
