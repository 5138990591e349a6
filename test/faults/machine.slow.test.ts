// Resources that a machine can refuse: the binary, features of the kernel, descriptors. Calls still work,
// over a slower channel, and one warning reports it.

import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { platformName } from '../../src/lib/index.js';
import { Gate } from '../pool/calls/ways.js';
import { library, runProgram } from './child.js';

const twoPools = `
  import { Pool } from ${JSON.stringify(library)};
  const warnings = [];
  process.on('warning', ({ code, message }) => warnings.push({ code, message }));
  const channels = [];
  for (const worker of ['process', 'process', 'thread']) {
    const pool = new Pool({ size: 1, worker });
    channels.push(pool.stats().channel, await pool.run((a, b) => a + b, 1, 2));
    await pool.close();
  }
  console.log(JSON.stringify({ channels, warnings }));`;

interface Said {
  readonly channels: unknown[];
  readonly warnings: { code: string; message: string }[];
}

function parse(stdout: string): Said {
  return JSON.parse(stdout) as Said;
}

const works = ['socket', 3, 'socket', 3, 'memory', 3];

test('without its parser the error names the package, not the function', async (t) => {
  const { stdout, stderr, status } = await runProgram(
    t,
    `import Module from 'node:module';
     import { Pool } from ${JSON.stringify(library)};
     const resolve = Module._resolveFilename;
     Module._resolveFilename = (name, ...rest) => resolve(name === 'acorn' ? 'no-acorn' : name, ...rest);
     const pool = new Pool({ size: 1 });
     const error = await pool.run(() => 1).catch((error) => error);
     await pool.close();
     console.log(JSON.stringify([error.code, error.message, error.cause?.code]));`,
  );
  assert.equal(status, 0, stderr);
  const [code, message, cause] = JSON.parse(stdout);
  assert.deepEqual([code, cause], ['TRANSFER_UNREADABLE', 'MODULE_NOT_FOUND']);
  assert.match(message, /acorn/);
  assert.match(message, /install/);
  assert.doesNotMatch(message, /native/);
});

test('without the binary calls go over sockets and ports, and one warning reports it', async (t) => {
  const { stdout, stderr, status } = await runProgram(t, twoPools, {
    env: { MANYCORE_NATIVE: 'off' },
  });
  assert.equal(status, 0, stderr);
  const { channels, warnings } = parse(stdout);
  assert.deepEqual(channels, works);
  assert.deepEqual(
    warnings.map(({ code }) => code),
    ['NATIVE_MISSING'],
  );
  assert.match(warnings[0]?.message ?? '', /MANYCORE_NATIVE=off/);
});

test('a binary of another machine is as good as none', async (t) => {
  const file = `${new Gate(t).folder}/foreign.node`;
  writeFileSync(file, Buffer.from('\x7fELF not for this machine'));
  const { stdout, stderr, status } = await runProgram(t, twoPools, {
    env: { MANYCORE_NATIVE: file },
  });
  assert.equal(status, 0, stderr);
  const { channels, warnings } = parse(stdout);
  assert.deepEqual(channels, works);
  assert.equal(warnings.length, 1);
});

const shm = new URL('../../src/channels/shm/index.js', import.meta.url).href;
const isNativeHere = existsSync(
  new URL(`../../../prebuilds/${platformName()}/manycore.node`, import.meta.url),
);
const needsNative = { skip: isNativeHere ? false : 'there is no native binary here' };

for (const feature of ['memfd', 'eventfd']) {
  test(
    `where the kernel refuses ${feature} calls take another channel, and one warning reports it`,
    needsNative,
    async (t) => {
      const { stdout, stderr, status } = await runProgram(t, twoPools, {
        env: { MANYCORE_REFUSE: feature },
      });
      assert.equal(status, 0, stderr);
      const { channels, warnings } = parse(stdout);
      assert.deepEqual(channels, works);
      assert.deepEqual(
        warnings.map(({ code }) => code),
        ['NATIVE_REFUSED'],
      );
      assert.match(warnings[0]?.message ?? '', new RegExp(feature));
    },
  );

  test(
    `where the kernel refuses ${feature} channel "shm" is CHANNEL_UNAVAILABLE`,
    needsNative,
    async (t) => {
      const text = `
      import { Pool } from ${JSON.stringify(library)};
      try { new Pool({ channel: 'shm' }); } catch (error) { console.log(error.code); }`;
      const { stdout } = await runProgram(t, text, { env: { MANYCORE_REFUSE: feature } });
      assert.equal(stdout.trim(), 'CHANNEL_UNAVAILABLE');
    },
  );
}

test('without descriptors a call fails with a code instead of hanging', async (t) => {
  const text = `
    import { openSync } from 'node:fs';
    import { Pool } from ${JSON.stringify(library)};
    // Once while there are descriptors: modules of the first call are then loaded.
    const first = new Pool({ size: 1 });
    await first.run(() => 0);
    await first.close();
    const pool = new Pool({ size: 1, startRetryMs: 200 });
    try { for (;;) openSync('/dev/null'); } catch {}
    await pool.run(() => 1).then(
      (value) => console.log('value', value),
      (error) => console.log(error.code),
    );
    process.exit(0);`;
  const { stdout, stderr } = await runProgram(t, text, { shell: 'ulimit -n 256; exec "$@"' });
  assert.match(stdout, /WORKER_START_FAILED|NATIVE_REFUSED/, stderr);
});

test('a full /dev/shm does not matter', needsNative, async (t) => {
  const text = `
    import { Pool, shared } from ${JSON.stringify(library)};
    const pool = new Pool({ size: 1, channel: 'shm' });
    const bytes = shared(8 * 2 ** 20);
    console.log(await pool.run((given) => given.length, bytes));
    await pool.close();`;
  const shell =
    'unshare -m sh -c \'mount -t tmpfs -o size=4k tmpfs /dev/shm || exit 77; exec "$@"\' sh "$@" || exit $?';
  const { stdout, stderr, status } = await runProgram(t, text, { shell });
  if (status === 77 || /unshare/.test(stderr)) {
    t.skip('mounting needs more rights than this process has');
    return;
  }
  assert.equal(stdout.trim(), String(8 * 2 ** 20), stderr);
});

/** The result of `work`, or the code of its error. */
const outcome = `const outcome = async (work) => {
  try { return await work(); } catch (error) { return error.code; }
};`;

test('a sender that gets no more mappings gets an error, and goes on', needsNative, async (t) => {
  const text = `
    import { Pool, shared } from ${JSON.stringify(library)};
    import { offerShm, acceptShm } from ${JSON.stringify(shm)};
    ${outcome}
    const pool = new Pool({ size: 1, channel: 'shm' });
    const said = [await pool.run((value) => value, 1)];
    const offer = offerShm({ worker: 'thread', spin: false });
    const [{ channel }, worker] = [offer.open(), acceptShm(offer.ticket)];
    const sizes = [];
    worker.channel.handle({
      onFrame: (kind, task, target, body) => sizes.push(body.limit - body.position),
    });
    const send = (sizeBytes) => channel.trySend(0, 0, 0, (writer, bytes) => {
      writer.raw(bytes);
      return true;
    }, Buffer.alloc(sizeBytes));
    process.env.MANYCORE_REFUSE = 'mapping';
    said.push(await outcome(() => shared(2 ** 20).length));
    said.push(await outcome(() => send(2 ** 20)), send(10));
    said.push(await pool.run((value) => value, 2));
    delete process.env.MANYCORE_REFUSE;
    said.push(await outcome(() => shared(2 ** 20).length), send(2 ** 20));
    said.push(await pool.run((bytes) => bytes.length, Buffer.alloc(2 ** 20)));
    while (sizes.length < 2) await new Promise((resolve) => setImmediate(resolve));
    console.log(JSON.stringify([...said, ...sizes]));
    process.exit(0);`;
  const { stdout, stderr } = await runProgram(t, text);
  const refused = ['SHARED_MEMORY_FULL', 'SHARED_MEMORY_FULL', 'sent', 2];
  const granted = [2 ** 20, 'sent', 2 ** 20];
  assert.deepEqual(JSON.parse(stdout || '0'), [1, ...refused, ...granted, 10, 2 ** 20], stderr);
});

test(
  'a worker that gets no more mappings rejects the call, and goes on',
  needsNative,
  async (t) => {
    const text = `
    import { Pool } from ${JSON.stringify(library)};
    ${outcome}
    const pool = new Pool({ size: 1, channel: 'shm' });
    const refuse = (what) => { process.env.MANYCORE_REFUSE = what; return process.pid; };
    const said = [];
    const pid = await pool.run(refuse, 'mapping');
    said.push(await outcome(() => pool.run((bytes) => bytes.length, Buffer.alloc(2 ** 20))));
    said.push(await outcome(() => pool.run((bytes) => bytes.length, Buffer.alloc(2 ** 20))));
    said.push(pid === await pool.run(refuse, ''));
    said.push(await outcome(() => pool.run((bytes) => bytes.length, Buffer.alloc(2 ** 20))));
    console.log(JSON.stringify(said));
    await pool.close();`;
    const { stdout, stderr } = await runProgram(t, text);
    const expected = ['NATIVE_REFUSED', 'NATIVE_REFUSED', true, 2 ** 20];
    assert.deepEqual(JSON.parse(stdout || '0'), expected, stderr);
  },
);

test(
  'a parent that gets no more mappings loses the worker, and reports the reason',
  needsNative,
  async (t) => {
    const text = `
    import { Pool } from ${JSON.stringify(library)};
    const pool = new Pool({ size: 1, channel: 'shm', env: { MANYCORE_REFUSE: '' } });
    const long = (sizeBytes) => 'x'.repeat(sizeBytes);
    const said = [await pool.run(long, 1)];
    process.env.MANYCORE_REFUSE = 'mapping';
    await pool.run(long, 100_000).catch((error) => said.push(error.code, error.cause?.code));
    delete process.env.MANYCORE_REFUSE;
    said.push((await pool.run(long, 100_000)).length);
    console.log(JSON.stringify(said));
    await pool.close();`;
    const { stdout, stderr } = await runProgram(t, text);
    assert.deepEqual(
      JSON.parse(stdout || '0'),
      ['x', 'WORKER_EXITED', 'NATIVE_REFUSED', 100_000],
      stderr,
    );
  },
);
