// Test frameworks replace timers and clocks with fakes that never advance. Waits of ours are on other
// processes, which the fakes do not reach: everything works as before.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ways } from '../pool/calls/ways.js';
import { readRepositoryFile, sourceFilesOf } from '../support/repository.js';
import { library, runProgram } from './child.js';

/** The method of sinon, Jest and Vitest: nothing ever fires, and a timer of Node is no timer. */
const fakes = `
  import timers from 'node:timers';
  import { syncBuiltinESMExports } from 'node:module';
  const handle = () => ({ unref: () => handle(), ref: () => handle(), hasRef: () => true });
  const clear = (timer) => {
    if (timer?.constructor?.name === 'Timeout') throw new Error('clearTimeout was invoked to clear a native timer');
  };
  const fake = {
    setTimeout: handle, setInterval: handle, setImmediate: handle,
    clearTimeout: clear, clearInterval: clear, clearImmediate: clear,
  };
  Object.assign(globalThis, fake);
  Object.assign(timers, fake);
  syncBuiltinESMExports();
  performance.now = () => 0;
  Date.now = () => 0;`;

/** A program that runs under them, and its output. */
const uses: Record<string, readonly [program: string, printed: string]> = {
  'a call and close()': ['console.log(await pool.run(() => 1)); await pool.close();', '1\n'],
  'a time limit': [
    `console.log(await pool.with({ timeoutMs: 50 }).run(() => { for (;;); }).catch((e) => e.code));
     await pool.close();`,
    'TASK_TIMED_OUT\n',
  ],
  'an abort': [
    `const abort = new AbortController();
     await pool.warm();
     const call = pool.with({ signal: abort.signal }).run(() => { for (;;); });
     abort.abort();
     console.log(await call.catch((e) => e.code));
     await pool.close();`,
    'ABORTED\n',
  ],
  'a map': [
    'console.log((await pmap([1, 2, 3], (x) => x + 1, { pool })).join()); await pool.close();',
    '2,3,4\n',
  ],
  'a map in the caller': [
    "console.log((await pmap([1, 2, 3], (x) => x + 1, { channel: 'inline' })).join());",
    '2,3,4\n',
  ],
  'a stream of an async input': [
    `const input = (async function* () { yield 1; yield 2; })();
     for await (const x of pmap.stream(input, (x) => x, { pool })) console.log(x);
     await pool.close();`,
    '1\n2\n',
  ],
  'a generator': [
    `for await (const x of await pool.run(function* () { yield 1; yield 2; })) console.log(x);
     await pool.close();`,
    '1\n2\n',
  ],
  'destroy()': [
    `const call = pool.run(() => { for (;;); }).catch((e) => e.code);
     await pool.destroy();
     console.log(await call);`,
    'POOL_CLOSED\n',
  ],
  'a worker that dies': [
    `console.log(await pool.run(() => process.exit(3)).catch((e) => e.code));
     console.log(await pool.run(() => 2));
     await pool.close();`,
    'WORKER_EXITED\n2\n',
  ],
  'no close at all': ['console.log(await pool.run(() => 1));', '1\n'],
};

/** Node's own streams need `process.nextTick`, and so does a channel over a socket. */
const moreFakes = 'process.nextTick = () => {}; globalThis.queueMicrotask = () => {};';

const whens = ['after', 'before'] as const;

for (const [way, when] of ways.flatMap((way) => whens.map((when) => [way, when] as const))) {
  test(`${way.name}: ${Object.keys(uses).join(', ')} work under fake timers that are there ${when} the library`, async (t) => {
    const options = JSON.stringify({
      size: 1,
      worker: way.worker,
      channel: way.channel,
      graceMs: 20,
    });
    const programs = Object.entries(uses).map(
      ([what, [program]]) =>
        `{ console.log(${JSON.stringify(what)}); const pool = new Pool(${options}); ${program} }`,
    );
    const load = `const { Pool, pmap } = await import(${JSON.stringify(library)});`;
    const fake = way.channel === 'socket' ? fakes : fakes + moreFakes;
    const text = [...(when === 'after' ? [load, fake] : [fake, load]), ...programs].join('\n');
    const { status, stdout, stderr } = await runProgram(t, text);
    const printed = Object.entries(uses).map(([what, [, text]]) => `${what}\n${text}`);
    assert.deepEqual([status, stdout], [0, printed.join('')], stderr);
  });
}

const parts = ['agent', 'bus', 'channels', 'worker', 'lib', 'pmap', 'pool'];
const names = 'setTimeout|setImmediate|setInterval|clearTimeout|clearInterval|clearImmediate';

test('no part that a pool needs takes its timers from the global object at a call', () => {
  for (const file of sourceFilesOf(parts)) {
    if (file.endsWith('/timers.ts')) continue;
    const text = readRepositoryFile(file);
    for (const [, name = ''] of text.matchAll(new RegExp(`(?<![.#\\w])(${names})\\(`, 'g'))) {
      const imported = new RegExp(
        `import \\{[^}]*\\b${name}\\b[^}]*\\} from '[^']*/(?:lib/index|timers)\\.js'`,
      );
      assert.match(text, imported, `${file} calls ${name}: import it from lib`);
    }
    assert.doesNotMatch(text, /process\.nextTick\(/, `${file}: import nextTick from lib`);
  }
});
