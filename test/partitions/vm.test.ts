// Calls, results and ends of workers on kernels of their own. Skipped for an engine that is not there: a kernel
// (package user-mode-linux, or scripts/build-guest-kernel.mjs), or gVisor (package runsc).

import assert from 'node:assert/strict';
import fs, {
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import net from 'node:net';
import os, { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { hasCode } from '../../src/errors.js';
import { readTree } from '../../src/proc/index.js';
import { Pool, partitionProblem, pmap } from '../../src/public.js';
import { allowedCores } from '../../src/worker/index.js';
import { killOne, waitFor } from '../support/index.js';
import {
  commandOf,
  type Engine,
  guestProcesses,
  outcome,
  skip,
  skipVm,
  vmPool,
} from './support.js';

function folder(t: TestContext): string {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'manycore-vm-')));
  t.after(() => rmSync(path, { recursive: true }));
  return path;
}

const engines: readonly Engine[] = ['uml', 'gvisor'];

for (const engine of engines) {
  test(`${engine}: a call has its captures and arguments, and its result comes back`, {
    skip: skipVm(engine),
  }, async (t) => {
    const pool = vmPool(t, { engine });
    const factor = 7;
    const byName = new Map([['a', { deep: [1n, new Date(5)] }]]);
    assert.equal(await pool.run((x: number) => x * factor, 6), 42);
    const { workers, partition } = pool.stats();
    assert.deepEqual([workers[0]?.kind, partition?.engine], ['vm', engine]);
    assert.deepEqual(await pool.run(() => byName), byName);
    const bytes = await pool.run(
      (given: Buffer) => given.map((byte) => byte + 1),
      Buffer.alloc(3e6),
    );
    assert.ok(bytes.length === 3e6 && bytes.every((byte) => byte === 1));
    assert.deepEqual(await pmap([1, 2, 3], (x) => x * factor, { pool }), [7, 14, 21]);
    const items: number[] = [];
    const stream = await pool.run(function* () {
      for (let at = 0; at < 100; at += 1) yield at;
    });
    for await (const item of stream) items.push(item);
    assert.equal(items.length, 100);
  });

  test(`${engine}: no call waits for a bell that was missed`, {
    skip: skipVm(engine),
  }, async (t) => {
    const pool = vmPool(t, { engine });
    const calls = pool.with({ timeoutMs: 30_000 });
    for (let at = 0; at < 1000; at += 1) {
      assert.equal(await calls.run((x: number) => x, at), at);
      if (at % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 3)); // both sides sleep
    }
  });

  test(`${engine}: an error comes as its name, message and stack`, {
    skip: skipVm(engine),
  }, async (t) => {
    const pool = vmPool(t, { engine });
    await assert.rejects(
      pool.run(() => {
        throw new RangeError('as thrown');
      }),
      (error) => {
        assert.ok(error instanceof RangeError);
        assert.equal(error.message, 'as thrown');
        assert.match(error.stack ?? '', /vm\.test/);
        return true;
      },
    );
    await assert.rejects(
      pool.run(() => () => 1),
      (error) => hasCode(error, 'PARTITION_CODE'),
    );
  });

  test(`${engine}: it has another kernel, and no rights`, { skip: skipVm(engine) }, async (t) => {
    const pool = vmPool(t, { engine, env: { OWN: 'set' } });
    const seen = await pool.run(() => ({
      release: os.release(),
      user: process.getuid?.(),
      rights: fs.readFileSync('/proc/self/status', 'utf8').match(/^CapEff:\s*(\w+)/m)?.[1],
      variables: Object.keys(process.env).sort(),
    }));
    assert.notEqual(seen.release, os.release());
    // In gVisor it is the owner of its files, who is 0 there.
    assert.deepEqual([seen.user, Number(seen.rights)], [engine === 'uml' ? 65534 : 0, 0]);
    const preload = engine === 'uml' ? ['LD_PRELOAD'] : [];
    assert.deepEqual(seen.variables, ['HOME', ...preload, 'OWN', 'PATH', 'PWD', 'TZ']);
  });

  test(`${engine}: its clocks go with those outside`, { skip: skipVm(engine) }, async (t) => {
    const pool = vmPool(t, { engine });
    const before = Date.now();
    const inside = await pool.run(() => Date.now());
    const after = Date.now();
    // Both read a clock of whole milliseconds; the guest's begins with a measurement.
    assert.ok(before - 100 <= inside && inside <= after + 100, `${before} ${inside} ${after}`);
    const steps = await pool.run(() => {
      let latest = performance.now();
      for (let at = 0; at < 100_000; at += 1) {
        const now = performance.now();
        if (now < latest) return `${now} after ${latest}`;
        latest = now;
      }
      return 'forward';
    });
    assert.equal(steps, 'forward');
  });

  test(`${engine}: it has no file but its own, and no network`, {
    skip: skipVm(engine),
  }, async (t) => {
    const own = folder(t);
    writeFileSync(join(own, 'inside'), 'read');
    const pool = vmPool(t, { engine, read: [own] });
    const path = join(own, 'inside');
    assert.equal(await pool.run((file: string) => fs.readFileSync(file, 'utf8'), path), 'read');
    const attempts: Readonly<Record<string, () => unknown>> = {
      'a file of the system': () => fs.readFileSync('/etc/passwd'),
      'the home of root': () => fs.readdirSync('/root'),
      'a folder that it may only read': () => fs.writeFileSync(path, 'x'),
      'the memory of its kernel': () => fs.openSync('/dev/mem', 'r+'),
      'the exit code of its kernel': () => fs.writeFileSync('/proc/exitcode', '0'),
      'the folder outside of its own': () => fs.readdirSync('/.manycore/tmp/.manycore-guest'),
      'the serial line of its channel': () => fs.openSync('/dev/ttyS0', 'r+'),
    };
    for (const [name, attempt] of Object.entries(attempts)) {
      const code = await pool.run(outcome, attempt);
      assert.match(String(code), /^(?:ENOENT|EACCES|EPERM|EROFS|ENOTDIR)$/, `${name}: ${code}`);
    }
    const connected = await pool.run(
      () =>
        new Promise((resolve) => {
          const socket = net.connect(80, '127.0.0.1', () => resolve('connected'));
          socket.on('error', (error) => resolve('code' in error ? error.code : String(error)));
        }),
    );
    assert.match(String(connected), /^(?:ENOSYS|EPERM|EAFNOSUPPORT|ENETUNREACH|ECONNREFUSED)$/);
  });

  test(`${engine}: a folder that it may write keeps what it has written`, {
    skip: skipVm(engine),
  }, async (t) => {
    const own = folder(t);
    const pool = vmPool(t, { engine, write: [own] });
    const file = join(own, 'made');
    await pool.run((path: string) => fs.writeFileSync(path, 'written inside'), file);
    await pool.close();
    assert.equal(readFileSync(file, 'utf8'), 'written inside');
    assert.deepEqual(readdirSync(own), ['made']);
  });

  test(`${engine}: its output comes out, and its files end with it`, {
    skip: skipVm(engine),
  }, async (t) => {
    const texts: string[] = [];
    const pool = vmPool(
      t,
      { engine },
      { onOutput: (text, { stream }) => void texts.push(`${stream}: ${text}`) },
    );
    await pool.run(() => {
      console.log('a line\r with %s', 'bytes\x1b[1m');
      console.error('an error');
      fs.writeFileSync('/tmp/own', 'x');
    });
    await waitFor(() => texts.join('').includes('an error') && texts.join('').includes('a line'));
    const lines = texts.join('').replaceAll(/std(?:out|err): /g, '');
    assert.deepEqual(lines.split('\n').sort(), ['', 'a line\r with bytes\x1b[1m', 'an error']);
    // gVisor has one way out for both.
    if (engine === 'uml') assert.ok(texts.some((text) => text.startsWith('stdout: a line')));
    assert.equal(fs.existsSync('/tmp/own'), false);
  });

  test(`${engine}: a call past its time ends, and all of its guest with it`, {
    skip: skipVm(engine),
  }, async (t) => {
    const pool = vmPool(t, { engine });
    await pool.warm();
    const endless = pool.with({ timeoutMs: 50 }).run(() => {
      for (;;);
    });
    await assert.rejects(endless, (error) => hasCode(error, 'TASK_TIMED_OUT'));
    assert.equal(await pool.run(() => 2), 2);
    await pool.destroy();
    await waitFor(() => guestProcesses().length === 0);
  });

  test(`${engine}: too much memory ends it, by name, and another takes its place`, {
    skip: skipVm(engine),
  }, async (t) => {
    const pool = vmPool(t, { engine });
    const tooMuch = pool.run(() => {
      const all: Buffer[] = [];
      for (;;) all.push(Buffer.alloc(2 ** 20, 1));
    });
    await assert.rejects(tooMuch, (error) => {
      assert.ok(hasCode(error, 'WORKER_EXITED'), String(error));
      assert.match(String(error), /memory limit of 96 MiB \(memoryMb\)/);
      return true;
    });
    assert.equal(await pool.run(() => 2), 2);
  });

  test(`${engine}: its exit code is that of its program`, { skip: skipVm(engine) }, async (t) => {
    const pool = vmPool(t, { engine });
    await assert.rejects(
      pool.run(() => process.exit(7)),
      (error) => {
        assert.match(String(error), /exit code 7/);
        return true;
      },
    );
  });

  test(`${engine}: a spare guest that is killed or used is replaced`, {
    skip: skipVm(engine),
  }, async (t) => {
    const options = { size: { min: 0, max: 3 }, maxTasksPerWorker: 1, minSpareWorkers: 1 };
    const pool = vmPool(t, { engine }, { ...options, graceMs: 50, startRetryMs: 0 });
    const spares = (): number[] =>
      pool
        .stats()
        .workers.filter(({ state, tasksInFlight }) => state === 'ready' && tasksInFlight === 0)
        .flatMap(({ pid }) => pid ?? []);
    const next = async (known: readonly number[]): Promise<number> => {
      await waitFor(() => spares().some((pid) => !known.includes(pid)));
      return spares().find((pid) => !known.includes(pid)) ?? 0;
    };
    const given = new AbortController();
    const work = pool.with({ signal: given.signal }).run(() => new Promise(() => {}));
    const first = await next([]);
    killOne(readTree(first)[1] ?? 0, 'SIGKILL'); // bubblewrap, and so all of it
    const second = await next([first]);
    assert.equal(await pool.run(() => 1), 1);
    await next([first, second]);
    assert.equal(pool.stats().runningTasks, 1);
    given.abort();
    await assert.rejects(work);
    await pool.destroy();
    await waitFor(() => guestProcesses().length === 0);
  });
}

test('guests on cores of their own compute at once', { skip: skipVm('uml') }, async (t) => {
  const pool = vmPool(t, { engine: 'uml', core: 'each' }, { size: 2 });
  assert.deepEqual(await pmap([1, 2, 3, 4], (x) => x * x, { pool }), [1, 4, 9, 16]);
  const missing = vmPool(t, { engine: 'uml', core: 100_000 });
  await assert.rejects(
    missing.run(() => 1),
    (error) => {
      assert.match(String(error), /there is no core 100000/);
      return true;
    },
  );
});

test("with core: 'each' two guests have cores of their own", {
  skip: skipVm('uml') || (allowedCores().length < 2 && 'it needs two cores'),
}, async (t) => {
  const pool = vmPool(t, { engine: 'uml', core: 'each' }, { size: 2 });
  await pool.warm();
  const cores = pool.stats().workers.map(({ pid }) => {
    const kernels = readTree(Number(pid)).filter((each) =>
      commandOf(each).startsWith('/.manycore/linux'),
    );
    const all = kernels.map((each) => {
      const status = readFileSync(`/proc/${each}/status`, 'utf8');
      return /^Cpus_allowed_list:\s*(.*)$/m.exec(status)?.[1];
    });
    assert.equal(new Set(all).size, 1, all.join(' '));
    return Number(all[0]);
  });
  assert.ok(cores.every((core) => allowedCores().includes(core)));
  assert.equal(new Set(cores).size, 2, cores.join(' '));
});

test('a kernel that is none is refused', { skip }, async (t) => {
  const kernel = join(folder(t), 'linux');
  writeFileSync(kernel, 'no program');
  const pool = vmPool(t, { engine: 'uml', kernel });
  await assert.rejects(
    pool.run(() => 1),
    (error) => {
      assert.ok(hasCode(error, 'PARTITION_UNAVAILABLE'), String(error));
      return true;
    },
  );
});

test('options that are none are refused', () => {
  const wrong: readonly [string, object][] = [
    ['worker.engine', { engine: 'qemu' }],
    ['worker.core', { core: -1 }],
    ['worker.core', { core: 'all' }],
    ['worker.kernel', { kernel: 'linux' }],
    ['worker.kernel', { kernel: '/no/such/kernel' }],
    ['worker.memoryMb', { memoryMb: 10 }],
    ['network', { network: 'host' }],
  ];
  for (const [name, options] of wrong) {
    assert.throws(
      () => new Pool({ worker: { kind: 'vm', ...options } }),
      (error) => hasCode(error, 'OPTION_INVALID') && String(error).includes(name),
      name,
    );
  }
});

test('the package of a missing program is named', { skip }, async (t) => {
  const path = process.env['PATH'];
  process.env['PATH'] = '/nowhere';
  try {
    assert.match(String(partitionProblem([], 'vm')), /install the package user-mode-linux/);
    const pool = vmPool(t, { engine: 'gvisor' });
    await assert.rejects(
      pool.run(() => 1),
      /install the package runsc/,
    );
  } finally {
    process.env['PATH'] = path;
  }
});
