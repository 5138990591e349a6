// Programs with foreign properties on Object.prototype. No option that was not given may come from there:
// flags, variables and set-up of workers are code that runs. The names are those of all options in the
// sources. A getter for each records its reader: no frame of ours may be the reader.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readRepositoryFile, sourceFiles } from '../support/repository.js';
import { library, runProgram } from './child.js';

/** Names of all optional properties of interfaces that are called options. */
function optionNames(): string[] {
  const names = new Set<string>();
  for (const file of sourceFiles()) {
    if (!file.endsWith('.ts')) continue;
    const text = readRepositoryFile(file);
    for (const [, body = ''] of text.matchAll(
      /^export interface \w*Options\b[^{]*\{\n(.*?)^\}/gms,
    )) {
      for (const [, name = ''] of body.matchAll(/^ {2}readonly (\w+)\?:/gm)) names.add(name);
    }
  }
  return [...names];
}

const names = optionNames();

/** Getters on Object.prototype; `reads` has the names that our code has read from there. */
const pollute = `
  const ours = new URL('./', ${JSON.stringify(library)}).href;
  const reads = new Set();
  for (const name of ${JSON.stringify(names)}) {
    Object.defineProperty(Object.prototype, name, {
      configurable: true,
      get() {
        const [, reader = ''] = new Error().stack.split('\\n').slice(1);
        if (reader.includes(ours)) reads.add(name + ' ' + reader.trim());
        return undefined;
      },
      set(value) {
        Object.defineProperty(this, name, { value, writable: true, enumerable: true, configurable: true });
      },
    });
  }`;

const load = `const { Pool, parallel, parallelEvents, pmap, run } = await import(${JSON.stringify(library)});
  const { serveStatic } = await import(new URL('./http-apps/static/static.js', ${JSON.stringify(library)}).href);
  const { serveCgi } = await import(new URL('./http-apps/cgi/cgi.js', ${JSON.stringify(library)}).href);
  const { fillServeOptions } = await import(new URL('./serve/options.js', ${JSON.stringify(library)}).href);
  const { fillClusterOptions, fillLendOptions } = await import(new URL('./cluster/options.js', ${JSON.stringify(library)}).href);
  const { fillDeployOptions } = await import(new URL('./units/options.js', ${JSON.stringify(library)}).href);
  const { EventEmitter } = await import('node:events');`;

const use = `
  const said = [];
  const call = {
    whenBusy: 'queue', timeoutMs: 60000, maxQueueMs: 60000, signal: undefined, onReport() {}, priority: 0, retry: 0, key: 'k',
  };
  said.push(await run((a) => a, 1), await run.with(call)((a) => a, 2), await parallel((a) => a)(3));
  for (const options of [undefined, {}, { size: { min: 1 } }, { worker: 'thread' }]) {
    const pool = new Pool(options);
    said.push(await pool.run((a) => a, 4), await pool.with(call).run((a) => a, 5));
    await pool.with({ transfer: [], durable: false }).run((a) => a, 5);
    said.push(...await pmap([6], (a) => a, { pool }), ...await pmap([7], (a) => a, {}));
    await pool.close();
    await pool.close({});
  }
  parallelEvents(new EventEmitter(), [], {})[Symbol.dispose]();
  serveStatic(${JSON.stringify('/tmp')}, {});
  serveCgi(${JSON.stringify('/tmp')}, {});
  fillServeOptions({});
  fillServeOptions({ processes: { min: 1, max: 1 } });
  fillClusterOptions({ nats: 'nats://localhost' });
  fillLendOptions({});
  fillDeployOptions('./unit.js', {});
  console.log(JSON.stringify({ said, reads: [...reads] }));
  process.exit(0);`;

for (const [when, order, env] of [
  ['changed before the library loads', [pollute, load], {}],
  ['changed after the library has loaded', [load, pollute], {}],
  ['without the native binary', [load, pollute], { MANYCORE_NATIVE: 'off' }],
] as const) {
  test(`no option is read from Object.prototype, ${when}`, async (t) => {
    const { stdout, stderr } = await runProgram(t, [...order, use].join('\n'), { env });
    const { said, reads } = JSON.parse(stdout || '{}');
    assert.deepEqual(reads, [], stderr);
    assert.deepEqual(said.slice(0, 3), [1, 2, 3]);
  });
}

test('the names of options are found', () => {
  for (const name of ['env', 'execArgv', 'setup', 'timeoutMs', 'chunk', 'plan']) {
    assert.ok(names.includes(name), name);
  }
});

/** Values that would run foreign code, or break calls, if they were read. */
const poison = `{
  env: { NODE_OPTIONS: '--import data:text/javascript,globalThis.foreign=1' },
  execArgv: ['--import', 'data:text/javascript,globalThis.foreign=1'],
  setup: () => { globalThis.foreign = 1; },
  NODE_OPTIONS: '--import data:text/javascript,globalThis.foreign=1',
  shell: '/bin/false', timeoutMs: 1, maxHeapMb: 1, cluster: {}, durable: true, whenBusy: 'x',
}`;

for (const enumerable of [true, false]) {
  for (const worker of ['process', 'thread']) {
    test(`${worker}: ${enumerable ? 'enumerable' : 'hidden'} flags and variables of a prototype reach no worker`, async (t) => {
      const text = `
        const { Pool, run } = await import(${JSON.stringify(library)});
        for (const [name, value] of Object.entries(${poison})) {
          Object.defineProperty(Object.prototype, name, { value, enumerable: ${enumerable}, configurable: true, writable: true });
        }
        const pool = new Pool({ size: 1, worker: '${worker}' });
        const said = [await pool.run(() => globalThis.foreign === undefined), await run(() => globalThis.foreign === undefined)];
        await pool.close();
        console.log(JSON.stringify(said));
        process.exit(0);`;
      const { stdout, stderr } = await runProgram(t, text);
      assert.equal(stdout, '[true,true]\n', stderr);
    });
  }
}

for (const [name, value] of [
  ['path', "'/x'"],
  ['signal', '1'],
  ['set', '1'],
  ['writable', 'true'],
] as const) {
  test(`a refusal names "${name}" on Object.prototype where Node cannot load or start anything for it`, async (t) => {
    const text = `
      const { Pool } = await import(${JSON.stringify(library)});
      const { openTelemetryApi } = await import(new URL('./observe/opentelemetry/api.js', ${JSON.stringify(library)}).href);
      Object.defineProperty(Object.prototype, '${name}', { value: ${value}, configurable: true, writable: true });
      const pool = new Pool({ size: 1 });
      const one = 1;
      const said = [];
      for (const fn of [() => one, () => 1]) {
        await pool.run(fn).then((value) => said.push(value), ({ message }) => said.push(message));
      }
      try { openTelemetryApi(); } catch ({ message }) { said.push(message); }
      await pool.close();
      process.stdout.write(said.join('\\n'));
      process.exit(0);`;
    const { stdout, stderr } = await runProgram(t, text);
    const said = stdout.split('\n');
    assert.equal(said.length >= 2, true, stderr);
    for (const each of said) {
      if (each === '1') continue; // Node needed nothing
      assert.match(each, new RegExp(`added ${name} to Object\\.prototype.*delete it`));
      assert.doesNotMatch(each, /npm install/);
    }
    assert.match(said[0] ?? '', /^functions cannot be read/);
    assert.doesNotMatch(stderr, /npm run/);
  });
}

for (const holder of ['Object', 'Array']) {
  test(`a call is refused where lists inherit an element from ${holder}.prototype`, async (t) => {
    const text = `
      const { Pool, pmap } = await import(${JSON.stringify(library)});
      const pool = new Pool({ size: 1 });
      const said = [await pool.run(() => 1)];
      const other = new Pool({ size: 1 });
      ${holder}.prototype[3] = 'x';
      for (const call of [() => pool.run(() => 1), () => other.run((a) => a, [2]), () => pmap([1], (x) => x, { pool })]) {
        await call().then((value) => said.push(value), ({ code, message }) => said.push(code + ' ' + message));
      }
      delete ${holder}.prototype[3];
      said.push(await pool.run(() => 1), await other.run(() => 1));
      await Promise.all([pool.close(), other.close()]);
      console.log(said.join('\\n'));`;
    const { stdout, stderr } = await runProgram(t, text);
    const said = stdout.trim().split('\n');
    assert.equal(said.length, 6, stderr);
    const refusal = new RegExp(
      `^TRANSFER_UNREADABLE .*added 3 to ${holder}\\.prototype.*delete it`,
    );
    for (const each of said.slice(1, 4)) assert.match(each, refusal);
    assert.deepEqual([said[0], ...said.slice(4)], ['1', '1', '1']);
  });
}

test('no pool is made where lists inherit an element', async (t) => {
  const text = `
    const { Pool, run } = await import(${JSON.stringify(library)});
    Object.defineProperty(Object.prototype, 0, { value: 'x', configurable: true });
    let said = ''; // pushing to a list fails for all code
    try { new Pool({ size: 1 }); } catch ({ code, message }) { said += code + ' ' + message + '\\n'; }
    await run(() => 1).catch(({ code, message }) => { said += code + ' ' + message + '\\n'; });
    delete Object.prototype[0];
    console.log(said + await run(() => 1));
    process.exit(0);`;
  const { stdout, stderr } = await runProgram(t, text);
  const said = stdout.trim().split('\n');
  assert.equal(said.length, 3, stderr);
  for (const each of said.slice(0, 2)) {
    assert.match(each, /^[A-Z_]+ .*added 0 to Object\.prototype.*delete it/);
  }
  assert.equal(said[2], '1');
});
