import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { builtPlatforms } from '../../src/lib/index.js';
import { nativeRemedy, requireNative } from '../../src/native.js';
import { until } from '../channels/shm-harness.js';
import { readRepositoryFile } from '../support/repository.js';

const nativeUrl = JSON.stringify(new URL('../../src/native.js', import.meta.url).href);
const shmUrl = JSON.stringify(new URL('../../src/channels/shm/index.js', import.meta.url).href);

/** Runs a module's text in a fresh Node; returns its output. */
function run(text: string, environment: Record<string, string>): string {
  const found = spawnSync(process.execPath, ['--input-type=module', '-e', text], {
    encoding: 'utf8',
    env: { ...process.env, ...environment },
  });
  assert.equal(found.status, 0, found.stderr);
  return found.stdout.trim();
}

const printProblem = `
  const { nativeBinding, nativeProblem } = await import(${nativeUrl});
  console.log(nativeBinding() === undefined, nativeProblem()?.code, nativeProblem()?.message);`;

test('MANYCORE_NATIVE=off works without the binary and is named in the problem', () => {
  assert.match(run(printProblem, { MANYCORE_NATIVE: 'off' }), /^true NATIVE_MISSING .*=off/);
});

test('a missing binary is NATIVE_MISSING with the way out', () => {
  const printed = run(printProblem, { MANYCORE_NATIVE: '/nowhere/manycore.node' });
  assert.match(printed, /^true NATIVE_MISSING .*Unset MANYCORE_NATIVE/);
});

test('a file of another architecture is NATIVE_MISSING with the message of the loader', () => {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-'));
  try {
    // The ELF header of a 64-bit library for a machine that does not exist.
    const header = Buffer.alloc(64);
    header.write('\x7fELF\x02\x01\x01', 'latin1');
    header.writeUInt16LE(3, 16);
    header.writeUInt16LE(0xfeed, 18);
    const file = join(folder, 'manycore.node');
    writeFileSync(file, header);
    assert.match(
      run(printProblem, { MANYCORE_NATIVE: file }),
      /^true NATIVE_MISSING .*manycore.node/,
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a module that is not this binary is NATIVE_MISSING with the export that it lacks', () => {
  const printed = run(printProblem, { MANYCORE_NATIVE: 'node:os' });
  assert.match(printed, /^true NATIVE_MISSING .*exports no NativeSegment/);
});

test('a platform without a binary is not sent to npm', () => {
  const platforms = ['darwin-arm64', 'win32-x64', 'linux-ppc64-gnu', 'toString'];
  for (const platform of platforms) {
    const remedy = nativeRemedy(platform, 'not found');
    assert.match(remedy, /^There is no binary for .*, only for linux-x64-gnu, /);
    assert.doesNotMatch(remedy, /npm install|@manycore/);
    assert.equal(/npm run build:native/.test(remedy), platform.startsWith('linux-'), remedy);
  }
  const onMac = `
    Object.defineProperty(process, 'platform', { value: 'darwin' });
    Object.defineProperty(process, 'arch', { value: 'arm64' });
    ${printProblem}`;
  assert.match(run(onMac, {}), /^true NATIVE_MISSING .*There is no binary for darwin-arm64/);
});

test('a platform whose binary is not installed is sent to npm', () => {
  for (const platform of builtPlatforms) {
    const remedy = nativeRemedy(platform, 'not found');
    assert.ok(remedy.startsWith(`npm installs @manycore/${platform} beside this package`), remedy);
    assert.match(remedy, /--omit=optional/);
  }
});

test('the binary of another version is replaced by the one of this version', () => {
  const { version } = JSON.parse(readRepositoryFile('package.json'));
  for (const platform of builtPlatforms) {
    const remedy = nativeRemedy(platform, 'other version');
    assert.ok(remedy.startsWith(`Install @manycore/${platform} ${version}, `), remedy);
    assert.doesNotMatch(remedy, /omit/);
  }
});

test('a binary that is installed and does not load is not called missing', () => {
  const remedy = nativeRemedy('linux-x64-gnu', 'not loadable');
  assert.match(remedy, /^Install @manycore\/linux-x64-gnu again/);
  assert.doesNotMatch(remedy, /omit/);
});

test('the platforms with a binary are those that the release builds', async () => {
  const built = await import(new URL('../../../scripts/lib/platforms.mjs', import.meta.url).href);
  assert.deepEqual(builtPlatforms, Object.keys(built.platforms));
});

for (const feature of ['memfd', 'eventfd'] as const) {
  test(`a kernel that refuses ${feature} makes NATIVE_REFUSED and leaves no descriptor`, () => {
    const text = `
      import { readdirSync } from 'node:fs';
      const { offerShm } = await import(${shmUrl});
      const { requireNative } = await import(${nativeUrl});
      requireNative();
      const before = readdirSync('/proc/self/fd').length;
      let code;
      try { offerShm({ worker: 'process', spin: false }); } catch (error) { code = error.code; }
      await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
      const { ${feature} } = requireNative().probeKernel();
      console.log(code, readdirSync('/proc/self/fd').length - before, ${feature});`;
    assert.match(run(text, { MANYCORE_REFUSE: feature }), /^NATIVE_REFUSED 0 .*refused/);
  });
}

test('the probe of a kernel that grants everything finds no problem', () => {
  assert.deepEqual(requireNative().probeKernel(), { memfd: '', eventfd: '', pidfd: '' });
});

test('the cores granted are no more than the machine has, with a reason', () => {
  const { count, reason } = requireNative().grantedCores();
  assert.ok(count >= 1 && count <= availableParallelism());
  assert.match(reason, /core/);
  assert.equal(typeof requireNative().hasCpuQuota(), 'boolean');
});

test('a pinned thread runs where it was pinned, and a core that is not there is refused', () => {
  const text = `
    const { requireNative, callNative } = await import(${nativeUrl});
    const native = requireNative();
    native.pinThread([0]);
    let code;
    try { callNative(() => native.pinThread([4000])); } catch (error) { code = error.code; }
    console.log(native.currentCpu(), native.grantedCores().count, code);`;
  assert.equal(run(text, {}), '0 1 NATIVE_REFUSED');
});

test('the binary loads and unloads in twenty worker threads that talk over a channel', async () => {
  const text = `
    const { parentPort } = require('node:worker_threads');
    import(${shmUrl}).then(({ offerShm, acceptShm }) => {
      const offer = offerShm({ worker: 'thread', spin: true });
      const parent = offer.open();
      const worker = acceptShm(offer.ticket);
      worker.blocks.allocate(100000);
      worker.channel.handle({
        onFrame: (kind) => { parentPort.postMessage(kind); parentPort.close(); },
      });
      worker.channel.ref();
      parent.channel.trySend(7, 0, 0, () => true, undefined);
    });`;
  const talk = async (): Promise<unknown> => {
    const worker = new Worker(text, { eval: true });
    const [kind] = await once(worker, 'message');
    await worker.terminate();
    return kind;
  };
  for (let round = 0; round < 5; round++) {
    assert.deepEqual(await Promise.all([talk(), talk(), talk(), talk()]), [7, 7, 7, 7]);
  }
});

test('a thread that leaves its channels open ends by itself, the binary loaded only there', () => {
  const text = `
    import { Worker } from 'node:worker_threads';
    const work = ${JSON.stringify(`
      import(${shmUrl}).then(({ offerShm, acceptShm }) => {
        const offer = offerShm({ worker: 'thread', spin: true });
        const parent = offer.open();
        const worker = acceptShm(offer.ticket);
        parent.channel.trySend(7, 0, 0, () => true, undefined);
        worker.channel.handle({ onFrame: () => process.exit(0) });
      });`)};
    for (let round = 0; round < 3; round++) {
      const worker = new Worker(work, { eval: true });
      worker.on('error', (error) => { console.log(error); });
      await new Promise((resolve) => worker.on('exit', resolve));
    }
    console.log('done');`;
  assert.equal(run(text, {}), 'done');
});

test('a worker in an endless loop exits when its parent is killed', async () => {
  const workerText = `
    const { requireNative } = await import(${nativeUrl});
    console.log(process.pid, requireNative().watchParent(process.ppid, 0, 0));
    for (;;) {}`;
  const parentText = `
    import { spawn } from 'node:child_process';
    spawn(process.execPath, ['--input-type=module', '-e', ${JSON.stringify(workerText)}], { stdio: ['ignore', 'inherit', 'inherit'] });
    setInterval(() => {}, 1e6);`;
  const parent = spawn(process.execPath, ['--input-type=module', '-e', parentText], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(parent.stdout, 'data');
  const [pid, way] = String(line).trim().split(' ');
  assert.equal(way, 'pidfd');
  parent.kill('SIGKILL');
  await until(() => !isAlive(Number(pid)), 'the worker has exited');
});

test('a worker exits at once when its parent is gone already', () => {
  const text = `
    const { requireNative } = await import(${nativeUrl});
    requireNative().watchParent(process.ppid + 100000, 0, 0);`;
  const found = spawnSync(process.execPath, ['--input-type=module', '-e', text]);
  assert.equal(found.status, 113);
});

test("a worker exits at once when its parent's thread is gone already", () => {
  const text = `
    const { requireNative } = await import(${nativeUrl});
    requireNative().watchParent(process.ppid, 2 ** 30, 0);`;
  const found = spawnSync(process.execPath, ['--input-type=module', '-e', text]);
  assert.equal(found.status, 113);
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
