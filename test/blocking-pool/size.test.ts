// The size of the pool in processes that manycore starts, and that they use it.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import {
  blockingThreads,
  readBlockingPool,
  withBlockingThreads,
} from '../../src/blocking-pool/index.js';
import { command, startWith } from '../cli/serving.js';
import { library, runCommand } from '../faults/child.js';
import { bodyOf } from '../serve/client.js';
import { folder, skip } from '../serve/served.js';
import { skipCounting } from './programs.js';

for (const [cores, processes, threads] of [
  [1, 1, 4],
  [4, 1, 4],
  [6, 1, 6],
  [16, 2, 8],
  [16, 3, 6],
  [16, 16, 4],
  [4096, 1, 1024],
] as const) {
  test(`${processes} processes on ${cores} cores have ${threads} blocking threads each`, () => {
    assert.equal(blockingThreads(cores, processes), threads);
  });
}

test('any value of the user stays', () => {
  const env = { UV_THREADPOOL_SIZE: '7', PATH: '/bin' };
  assert.deepEqual(withBlockingThreads(env, 16), env);
  assert.deepEqual(withBlockingThreads({ UV_THREADPOOL_SIZE: '' }, 16), { UV_THREADPOOL_SIZE: '' });
});

test('our value for a process does not apply to its children', () => {
  const ours = withBlockingThreads({}, 16);
  assert.equal(ours['UV_THREADPOOL_SIZE'], '16');
  assert.equal(withBlockingThreads(ours, 4)['UV_THREADPOOL_SIZE'], undefined);
  assert.equal(withBlockingThreads(ours, 8)['UV_THREADPOOL_SIZE'], '8');
  const changed = { ...ours, UV_THREADPOOL_SIZE: '32' };
  assert.equal(withBlockingThreads(changed, 4)['UV_THREADPOOL_SIZE'], '32');
});

/** Answers each request with the size in its environment, after it has used its pool. */
const app = `
  import { stat } from 'node:fs/promises';
  import { createServer } from 'node:http';
  createServer(async (request, response) => {
    await stat('/');
    response.end(process.pid + ':' + process.env.UV_THREADPOOL_SIZE);
  }).listen(0);`;

async function servedWith(t: TestContext, flags: string[], size?: string): Promise<string> {
  const file = `${folder(t)}/app.mjs`;
  writeFileSync(file, app);
  const { UV_THREADPOOL_SIZE: _, ...env } = process.env;
  const given = { ...env, MANYCORE_CORES: '6', ...(size && { UV_THREADPOOL_SIZE: size }) };
  const { port } = await startWith(t, [...flags, file], { env: given });
  return bodyOf(port);
}

for (const [flags, given, threads] of [
  [['-P', '1', '-L', '2'], undefined, 6],
  [['-P', '1', '-L', '2'], '3', 3],
  [['-P', '2', '-L', '1'], undefined, 4],
] as const) {
  const [what, source] = [
    flags.join(' '),
    given === undefined ? '' : `, where the user sets ${given}`,
  ];
  test(`served with ${what} on 6 cores a process has ${threads} blocking threads${source}`, {
    skip: skip || skipCounting,
  }, async (t) => {
    const [pid, size] = (await servedWith(t, [...flags], given)).split(':');
    assert.equal(size, threads === 4 ? 'undefined' : String(threads));
    assert.equal(readBlockingPool(Number(pid)).threads, threads);
  });
}

/** Prints the sizes in the environments of a program and its worker, and the threads of the program. */
const program = `
  import { stat } from 'node:fs/promises';
  import { run } from ${JSON.stringify(library)};
  import { readBlockingPool } from ${JSON.stringify(
    new URL('../../src/blocking-pool/index.js', import.meta.url).href,
  )};
  await stat('/');
  const own = process.env.UV_THREADPOOL_SIZE ?? 'none';
  const worker = await run(() => process.env.UV_THREADPOOL_SIZE ?? 'none');
  console.log(JSON.stringify({ own, worker, threads: readBlockingPool().threads }));
  process.exit();`;

async function ranWith(t: TestContext, env: Record<string, string>): Promise<unknown> {
  const file = `${folder(t)}/program.mjs`;
  writeFileSync(file, program);
  const { stdout, stderr } = await runCommand(t, [process.execPath, command, 'run', file], {
    MANYCORE_CORES: '6',
    ...env,
  });
  return JSON.parse(stdout || JSON.stringify(stderr));
}

/** From Node 22 on Node itself has not used the pool when a program begins. */
const isInTime = Number(process.versions.node.split('.')[0]) >= 22;

test('manycore run has as many blocking threads as cores, where Node has not used the pool before', {
  skip: skipCounting,
}, async (t) => {
  const threads = isInTime ? 6 : 4;
  assert.deepEqual(await ranWith(t, {}), { own: '6', worker: 'none', threads });
});

test('the value of the user applies to manycore run and its workers', {
  skip: skipCounting,
}, async (t) => {
  const env = { UV_THREADPOOL_SIZE: '3' };
  assert.deepEqual(await ranWith(t, env), { own: '3', worker: '3', threads: 3 });
});
