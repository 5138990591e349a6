// The table of platforms in README.md against this machine: each row is tried with the native core and without
// it, and the page has what came of it. Not here: the channels (test/conformance), other systems.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { nativeBinding } from '../src/native.js';
import { library, runCommand, runProgram } from './faults/child.js';
import { Gate } from './pool/calls/ways.js';
import { readRepositoryFile } from './support/repository.js';

const libraries = {
  metrics: new URL('../src/observe/metrics/public.js', import.meta.url).href,
  serve: new URL('../src/serve/public.js', import.meta.url).href,
};
const command = fileURLToPath(new URL('../src/cli/main.js', import.meta.url));

const ofChannel = `pool.stats().channel === 'shm' ? 'over shared memory' : 'over sockets, slower'`;

/** Bodies of modules, by the first cell of their row. Each sets `result` to the text of another cell. */
const bodies: Readonly<Record<string, string>> = {
  '`run`, `parallel`, `pmap`, pools, streams': `
    const pool = new Pool({ size: 1 });
    const items = [];
    for await (const item of await pool.run(function* () { yield 1; yield 2; })) items.push(item);
    const made = await pmap(new Float64Array([1, 2]), (a) => a + 1, { pool });
    result = items.join() === '1,2' && made.join() === '2,3' ? ${ofChannel} : 'wrong';
    await pool.close();`,
  '`shared()`': `
    const bytes = shared(8);
    bytes[0] = 3;
    const seen = await run(() => { bytes[1] = 4; return bytes[0]; });
    const isOne = bytes[1] === 4;
    result = seen !== 3 ? 'wrong' : isOne ? 'one memory for all processes' : 'a copy for each call';`,
  '`tvar`, `atomically`, collections': `
    const count = tvar(0);
    const ways = [];
    for (const worker of ['process', 'thread']) {
      const pool = new Pool({ size: 1, worker });
      const add = pool.run(() => atomically(() => count.update((value) => value + 1)));
      await add.then(() => ways.push(worker), (error) => error.message.includes('NATIVE') || ways.push('wrong'));
      await pool.close();
    }
    const texts = { 'process,thread': 'between processes and threads', thread: 'between threads' };
    result = ways.length === count.peek() ? texts[ways] : 'wrong';`,
  '`serve`, `manycore serve`': `
    const server = await serve(process.env.APP, { port: 0, processes: 1, loops: 1 });
    const answer = await fetch('http://127.0.0.1:' + server.addresses[0].port);
    result = (await answer.text()) === 'here' ? 'works' : 'wrong';
    await server.close();`,
  '`deploy`, units on loops': `
    const deployment = await deploy(() => {}, { instances: 2 });
    result = 'works';
    await deployment.undeploy();`,
  '`bus` within one loop, or over NATS': `
    bus.consumer('sum', (message) => message.reply(message.body + 1));
    result = (await bus.request('sum', 1)).body === 2 ? 'works' : 'wrong';`,
  'metrics, `manycore top`, `doctor`': `
    const endpoint = await serveMetrics({ port: 0 });
    const page = await (await fetch(endpoint.url)).text();
    result = page.includes('manycore_') ? 'works' : 'wrong';
    await endpoint.close();`,
};

/** A module that prints `result`, or the code of what it threw in code quotes. */
function moduleOf(body: string): string {
  return `
    import { atomically, bus, deploy, Pool, pmap, run, shared, tvar } from '${library}';
    import { serveMetrics } from '${libraries.metrics}';
    import { serve } from '${libraries.serve}';
    let result;
    try {${body}
    } catch (error) {
      result = '\`' + error.code + '\`';
    }
    process.stdout.write(result, () => process.exit());`;
}

/** Cells of the rows of the table. */
function rowsOf(page: string): string[][] {
  const [, table = ''] = /<!-- platforms:begin -->\n([^]*?)<!-- platforms:end -->/.exec(page) ?? [];
  const lines = table.trim().split('\n').slice(2);
  return lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

const rows = rowsOf(readRepositoryFile('README.md'));
const cores = [
  { name: 'with the native core', env: {}, cell: 1, skip: !nativeBinding() && 'it is not built' },
  { name: 'without it', env: { MANYCORE_NATIVE: 'off' }, cell: 2, skip: false },
];

for (const { name, env, cell, skip } of cores) {
  for (const [feature = '', body] of Object.entries(bodies)) {
    test(`${feature} ${name} does what README.md says`, { skip }, async (t) => {
      const app = join(new Gate(t).folder, 'app.mjs');
      writeFileSync(app, 'export default (request, response) => response.end("here");');
      const ended = await runProgram(t, moduleOf(body), { env: { ...env, APP: app } });
      const row = rows.find(([first]) => first === feature);
      assert.equal(row?.[cell], ended.stdout, ended.stderr);
    });
  }
}

test('manycore trace names the methods that the native core would add', async (t) => {
  const args = [command, 'trace', '--method', 'ebpf', '--', process.execPath, '-e', '0'];
  const { status, stderr } = await runCommand(t, [process.execPath, ...args], {
    MANYCORE_NATIVE: 'off',
  });
  assert.notEqual(status, 0);
  assert.match(stderr, /native binary does not load/);
});

test('every row of the table is tried', () => {
  const tried = [...Object.keys(bodies), '`manycore trace`'];
  assert.deepEqual(rows.map(([first]) => first).sort(), tried.sort());
});
