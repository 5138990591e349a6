// Single runs of real programs under real loads, and their failures.

import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { CodedError } from '../../src/errors.js';
import type { Configuration } from '../../src/tune/configuration.js';
import { commandLoad, type Load, scriptLoad, taskCommand } from '../../src/tune/load/load.js';
import { launchOf, programOf } from '../../src/tune/program/launch.js';
import { type RunResult, runOnce } from '../../src/tune/program/program.js';
import { startOf } from '../../src/tune/program/start.js';
import { childrenOf, waitFor } from '../support/index.js';
import { folderWith, script, server } from './running.js';

interface Given {
  readonly files?: Readonly<Record<string, string>>;
  readonly command?: readonly string[];
  readonly load?: Load | 'task' | 'script.mjs';
  readonly configuration?: Configuration;
  readonly url?: string;
  readonly readyTimeoutMs?: number;
  readonly signal?: AbortSignal;
}

const noSignal = new AbortController().signal;

function runWith(t: TestContext, given: Given): Promise<RunResult> {
  const folder = folderWith(t, { 'script.mjs': script, ...given.files });
  const command = given.command ?? [process.execPath, join(folder, 'app.mjs')];
  const load = given.load ?? 'script.mjs';
  return runOnce({
    launch: launchOf(
      programOf(command, { serve: false, main: '' }),
      startOf(given.configuration ?? {}),
    ),
    load: load === 'script.mjs' ? scriptLoad(join(folder, load)) : load,
    url: given.url,
    length: { warmUpSeconds: 0.05, seconds: 0.2 },
    readyTimeoutMs: given.readyTimeoutMs ?? 20_000,
    signal: given.signal ?? noSignal,
  });
}

/** Expects this rejection; no run leaves a process behind. */
async function fails(run: Promise<unknown>, code: string, message: RegExp): Promise<void> {
  await assert.rejects(run, (error: CodedError) => {
    assert.equal(error.code, code, error.stack);
    assert.match(error.message, message);
    return true;
  });
  assert.deepEqual(childrenOf(process.pid), []);
}

const app = { 'app.mjs': server('1') };
const isLinux = process.platform === 'linux';

test('a run has the stats of load and program, and leaves no process', async (t) => {
  const { stats, hasWorkers, overheadMs } = await runWith(t, { files: app });
  const { perSecond, errorsPerSecond, p50Ms = 0, p99Ms = 0 } = stats;
  assert.ok(perSecond > 0 && errorsPerSecond === 0 && p50Ms > 0 && p99Ms >= p50Ms);
  assert.ok(!hasWorkers && overheadMs > 0);
  if (isLinux) assert.ok((stats.memoryMiB ?? 0) > 1 && (stats.largestMiB ?? 0) > 10);
  if (isLinux) assert.ok((stats.cpuCores ?? -1) >= 0);
  assert.deepEqual(childrenOf(process.pid), []);
});

test('a configuration reaches the program: environment, flags, cores', async (t) => {
  const first = `
    import { availableParallelism } from 'node:os';
    import { getHeapStatistics } from 'node:v8';
    const limit = Math.round(getHeapStatistics().heap_size_limit / 2 ** 20);
    const { UV_THREADPOOL_SIZE } = process.env;
    if (UV_THREADPOOL_SIZE !== '7' || limit > 200) throw new Error('not so: ' + limit);
    if (process.platform === 'linux' && availableParallelism() !== 1) throw new Error('all cores');`;
  const configuration = { blockingThreads: 7, heapLimit: 100, affinity: [0] };
  const { stats } = await runWith(t, { files: { 'app.mjs': server('1', first) }, configuration });
  assert.ok(stats.perSecond > 0);
});

test('workers of a pool are seen', { skip: !isLinux && 'there is no /proc' }, async (t) => {
  const index = new URL('../../src/public.js', import.meta.url).href;
  const first = `
    import { Pool } from ${JSON.stringify(index)};
    const pool = new Pool({ size: 1 });
    await pool.run(() => 1);`;
  const { hasWorkers } = await runWith(t, { files: { 'app.mjs': server('1', first) } });
  assert.equal(hasWorkers, true);
});

test('a task is called as often as there is time', async (t) => {
  const task = `
    import { setTimeout as sleep } from 'node:timers/promises';
    let running = 0;
    export default async ({ signal }) => {
      running += 1;
      if (running > 2) throw new Error(running + ' at once');
      if (!signal.aborted) await sleep(1);
      running -= 1;
    };`;
  const folder = folderWith(t, { 'task.mjs': task });
  const command = taskCommand(join(folder, 'task.mjs'), 2);
  const { stats } = await runWith(t, { command, load: 'task' });
  assert.ok(stats.perSecond > 0 && (stats.p50Ms ?? 0) > 0);
});

const failingTasks: [what: string, text: string, message: RegExp][] = [
  ['throws', "export default () => { throw new Error('broken'); };", /broken/],
  ['is no function', 'export default 5;', /no function as its default export/],
  ['does not load', "import './nowhere.mjs';", /cannot be loaded.*nowhere/],
  ['ends its process', 'export default () => process.exit(3);', /exit code 3 under load/],
];
for (const [what, text, message] of failingTasks) {
  test(`a task that ${what} is TUNE_PROGRAM_FAILED`, async (t) => {
    const folder = folderWith(t, { 'task.mjs': text });
    const command = taskCommand(join(folder, 'task.mjs'), 1);
    await fails(runWith(t, { command, load: 'task' }), 'TUNE_PROGRAM_FAILED', message);
  });
}

test('the error of a program that ends before it is ready has its exit code', async (t) => {
  const files = { 'app.mjs': "throw new RangeError('no configuration');" };
  const message = /exit code 1 before it was ready, and printed "RangeError: no configuration"/;
  await fails(runWith(t, { files }), 'TUNE_PROGRAM_FAILED', message);
});

test('a program that cannot be started is TUNE_PROGRAM_FAILED', async (t) => {
  const message = /cannot be started \(spawn \/nowhere\/app ENOENT\)/;
  await fails(runWith(t, { command: ['/nowhere/app'] }), 'TUNE_PROGRAM_FAILED', message);
});

test('a crash of the program under load is reported, not the failure of its load', async (t) => {
  const files = { 'app.mjs': server('process.exit(7)') };
  await fails(runWith(t, { files }), 'TUNE_PROGRAM_FAILED', /exit code 7 under load/);
});

test('the error of a program with a full heap names the heap', async (t) => {
  const hoard = `
    const hoard = [];
    const fill = () => { for (;;) hoard.push(new Array(1000).fill(hoard.length)); };`;
  const files = { 'app.mjs': server('fill()', hoard) };
  const run = runWith(t, { files, configuration: { heapLimit: 20 } });
  await fails(run, 'TUNE_PROGRAM_FAILED', /as after a full heap, and printed "FATAL ERROR.*heap/);
});

test('a program that listens nowhere is TUNE_NOT_READY at the deadline', async (t) => {
  const files = { 'app.mjs': "console.error('warming up'); setInterval(() => {}, 1000);" };
  const message = /nothing answers at http:\/\/127\.0\.0\.1:\d+\/ after 0\.5 s.*--url/;
  await fails(runWith(t, { files, readyTimeoutMs: 500 }), 'TUNE_NOT_READY', message);
});

test('a port that something else has is TUNE_PORT_TAKEN', async (t) => {
  const other = createServer().listen(0, '127.0.0.1');
  t.after(() => other.close());
  await waitFor(() => other.listening);
  const address = other.address();
  const port = typeof address === 'object' ? address?.port : 0;
  const url = `http://127.0.0.1:${port}/`;
  await fails(runWith(t, { files: app, url }), 'TUNE_PORT_TAKEN', /answers at .* already/);
});

const failingLoads: [what: string, line: string, message: RegExp][] = [
  ['fails', 'echo no such host >&2; exit 3', /exit code 3, and printed "no such host"/],
  ['is not there', 'nosuchload {url}', /exit code 127.*not found/],
  ['ends early', 'true {seconds}', /ended after 0\.\d s of 1\b/],
  ['prints nothing readable', 'sleep {seconds}; echo done', /no readable result.*done/],
  [
    'has no answers',
    `echo '{"requests": 0, "errors": 9}'`,
    /no request with a good answer.*9 errors/,
  ],
  ['is killed', 'kill -9 $$', /ended by SIGKILL/],
];
for (const [what, line, message] of failingLoads) {
  test(`a load that ${what} is TUNE_LOAD_FAILED`, async (t) => {
    await fails(runWith(t, { files: app, load: commandLoad(line) }), 'TUNE_LOAD_FAILED', message);
  });
}

const failingScripts: [what: string, text: string, message: RegExp][] = [
  ['throws', "export default () => { throw new Error('no way'); };", /no way/],
  ['resolves with nothing', 'export default () => undefined;', /has to resolve with \{ requests/],
  ['is no function', 'export default {};', /no function as its default export/],
  ['returns early', 'export default () => ({ requests: 1 });', /returned after 0\.\d s of 0\./],
  ['ends its process', 'export default () => process.exit(4);', /ended with exit code 4/],
];
for (const [what, text, message] of failingScripts) {
  test(`a script that ${what} is TUNE_LOAD_FAILED`, async (t) => {
    const files = { ...app, 'script.mjs': text };
    await fails(runWith(t, { files }), 'TUNE_LOAD_FAILED', message);
  });
}

test('a URL reaches a command as it is, whatever a shell would make of it', async (t) => {
  const folder = folderWith(t, {
    ...app,
    'url.mjs': 'console.log(JSON.stringify(process.argv.slice(2)))',
  });
  const line = `${process.execPath} ${join(folder, 'url.mjs')} {url} '{url}' "{url}" >&2; exit 3`;
  const port = 1;
  const url = `http://127.0.0.1:${port}/?a='1'&b=$(echo 2);c=\`d\`#"\\`;
  const load = commandLoad(line);
  const run = { url, port, seconds: 1, isWarmUp: false, signal: noSignal };
  await assert.rejects(load(run), (error: CodedError) => {
    assert.ok(error.message.includes(JSON.stringify([url, url, url])), error.message);
    return true;
  });
});

test('a command gets where the program is and how long, and one that takes longer warms up so', async (t) => {
  const line = `sleep 1; echo '{"requests": 10, "seconds": {seconds}, "p50Ms": {port}}' {url} >&2; echo '{"requests": 10, "p50Ms": {port}}'`;
  const { stats } = await runWith(t, { files: app, load: commandLoad(line) });
  assert.ok((stats.p50Ms ?? 0) > 1023, 'the port');
  const untold = `sleep 0.3; echo '{"requests": 30, "seconds": 0.3}'`;
  const second = await runWith(t, { files: app, load: commandLoad(untold) });
  assert.equal(Math.round(second.stats.perSecond), 100);
});

test('the start-up of a script is no time of its load', async (t) => {
  const text = `
    import { setTimeout as sleep } from 'node:timers/promises';
    await sleep(500);
    export default async ({ seconds }) => {
      const begin = performance.now();
      await sleep(seconds * 1000);
      return { requests: performance.now() - begin };
    };`;
  const { stats } = await runWith(t, { files: { ...app, 'script.mjs': text } });
  // A request for each ms of its load; with the start-up it would be less than a third of them.
  assert.ok(stats.perSecond > 500 && stats.perSecond <= 1001, `${stats.perSecond}`);
});

test('the duration that a script reports counts', async (t) => {
  const text = 'export default () => ({ requests: 100, seconds: 4 });';
  const { stats } = await runWith(t, { files: { ...app, 'script.mjs': text } });
  assert.equal(stats.perSecond, 25);
});

test('children of a program end with it, also those that left its group or ignore signals', async (t) => {
  const first = `
    import { spawn } from 'node:child_process';
    process.on('SIGTERM', () => {});
    const rest = ['-e', "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)"];
    const children = [false, true].map((detached) => spawn(process.execPath, rest, { detached }));
    const pids = children.map(({ pid }) => pid).join();
    `;
  const files = { 'app.mjs': server('console.error(pids) ?? 1', first) };
  let pids: readonly number[] = [];
  const load: Load = async ({ isWarmUp }) => {
    if (isWarmUp) return { requests: 1, errors: 0 };
    const [root] = childrenOf(process.pid);
    pids = [root, ...childrenOf(root?.pid ?? 0)].map((each) => each?.pid ?? 0);
    return { requests: 1, errors: 0, seconds: 1 };
  };
  await runWith(t, { files, load });
  assert.equal(pids.length, isLinux ? 3 : 1);
  await waitFor(() => pids.every((pid) => !runs(pid)));
});

function runs(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

test('an aborted run rejects with ABORTED at once, and leaves no process', async (t) => {
  const controller = new AbortController();
  const load: Load = ({ signal }) =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      controller.abort(new Error('enough'));
    });
  await assert.rejects(runWith(t, { files: app, load, signal: controller.signal }), /enough/);
  assert.deepEqual(childrenOf(process.pid), []);
  const run = runWith(t, { files: app, signal: controller.signal });
  await fails(run, 'ABORTED', /enough/);
  const early = AbortSignal.timeout(30);
  await fails(runWith(t, { files: app, signal: early }), 'ABORTED', /aborted/);
});
