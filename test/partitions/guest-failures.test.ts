// Guests that do not start, or whose kernel ends: one sentence with the engine, the failure, its cause and the way out.

import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { hasCode } from '../../src/errors.js';
import { readTree } from '../../src/proc/index.js';
import { Pool, type PoolOptions, type VmOptions } from '../../src/public.js';
import { vmPrograms } from '../../src/worker/index.js';
import { waitFor } from '../support/index.js';
import {
  type Engine,
  groups,
  guestProcesses,
  sandboxProcesses,
  skipVm,
  vmPool,
} from './support.js';

function folder(t: TestContext): string {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'manycore-vm-')));
  t.after(() => rmSync(path, { recursive: true }));
  return path;
}

function program(t: TestContext, content: string | Uint8Array, name = 'linux'): string {
  const path = join(folder(t), name);
  writeFileSync(path, content);
  chmodSync(path, 0o755);
  return path;
}

/** A program of Node, which is in every partition. */
const script = (text: string): string => `#!${process.execPath}\n${text}`;

interface Failure {
  readonly message: string;
  readonly cause: string;
  readonly startedWorkers: number;
}

/** Calls a guest that does not start. */
async function failureOf(
  t: TestContext,
  vm: Omit<VmOptions, 'kind'>,
  options: PoolOptions = {},
): Promise<Failure> {
  const output: string[] = [];
  const pool = vmPool(t, vm, { onOutput: (text) => void output.push(text), ...options });
  try {
    await pool.run(() => 1);
  } catch (error) {
    assert.ok(hasCode(error, 'PARTITION_UNAVAILABLE'), String(error));
    const { startedWorkers } = pool.stats();
    await pool.destroy();
    const cause = error.cause instanceof Error ? error.cause.message : '';
    return { message: error.message, cause, startedWorkers };
  }
  throw new Error('it has started');
}

const own = vmPrograms().kernel;
const kernel = 'path' in own ? realpathSync(own.path) : '';

/** A start whose last words come late is taken for one that may pass. */
const maxStarts = 3;

interface Case {
  readonly name: string;
  readonly kernel: (t: TestContext) => string;
  readonly read?: readonly string[];
  readonly message: RegExp;
  readonly cause: RegExp;
}

const panicking = `
  const { spawnSync } = require('node:child_process');
  const words = process.argv.slice(2).filter((word) => !/^(init|iomem)=/.test(word));
  const { status } = spawnSync(${JSON.stringify(kernel)}, [...words, 'init=/no/such/init'], { stdio: 'inherit' });
  process.exitCode = status ?? 134;
`;
const cases: readonly Case[] = [
  {
    name: 'a file that is no program',
    kernel: (t) => program(t, 'no program\n'),
    message: /the kernel \/.*\/linux is no program for this machine: name another kernel/,
    cause: /cannot be started/,
  },
  {
    name: 'a program that is no kernel',
    kernel: () => realpathSync('/bin/true'),
    message: /the kernel \/.*\/true ended with exit code 0 before its worker began/,
    cause: /^$/,
  },
  {
    name: 'a program that says why it fails',
    kernel: (t) => program(t, script('console.error("\\nit is\\x1b broken\\n"); process.exit(1)')),
    message: /ended with exit code 1 before its worker began/,
    cause: /^it is\ufffd broken$/,
  },
  {
    name: 'a kernel that is cut',
    kernel: (t) => {
      const bytes = readFileSync(kernel);
      return program(t, bytes.subarray(0, bytes.length / 2));
    },
    message: /(?:ended with exit code \d+ before its worker began|is no program)/,
    cause: /^/,
  },
  {
    name: 'a kernel that panics',
    kernel: (t) => program(t, script(panicking)),
    read: [kernel],
    message: /ended with exit code 134 before its worker began/,
    cause: /^Kernel panic - .*\/no\/such\/init/,
  },
];
for (const { name, message, cause, ...given } of cases) {
  test(`${name} is refused in one sentence, and soon`, { skip: skipVm('uml') }, async (t) => {
    const vm = { engine: 'uml', kernel: given.kernel(t), read: given.read } as const;
    const failure = await failureOf(t, vm);
    assert.match(failure.message, /a guest on User-mode Linux did not start: /);
    assert.match(failure.message, /use engine 'gvisor'/);
    assert.match(failure.message, message);
    assert.match(failure.cause, cause);
    assert.ok(failure.startedWorkers <= maxStarts, `${failure.startedWorkers} starts`);
  });
}

/** Makes a program with this text the runsc of PATH. */
function useRunsc(t: TestContext, text: string): void {
  const path = process.env['PATH'];
  process.env['PATH'] = `${dirname(program(t, script(text), 'runsc'))}:${path}`;
  t.after(() => {
    process.env['PATH'] = path;
  });
}

test('a runsc that fails is refused with its own words', { skip: skipVm('gvisor') }, async (t) => {
  useRunsc(t, 'console.error("it is broken"); process.exit(128)');
  const { message, cause, startedWorkers } = await failureOf(t, { engine: 'gvisor' });
  assert.match(message, /a guest on gVisor did not start: runsc ended with exit code 128/);
  assert.match(message, /check the package runsc, or use engine 'uml'/);
  assert.equal(cause, 'it is broken');
  assert.ok(startedWorkers <= maxStarts, `${startedWorkers} starts`);
});

function useSilentRunsc(t: TestContext): object {
  useRunsc(t, silent);
  return {};
}

const silent = 'console.error("it begins"); setInterval(() => {}, 1000)';
const unanswering: readonly (readonly [
  what: string,
  engine: Engine,
  use: (t: TestContext) => Omit<VmOptions, 'kind'>,
  wayOut: RegExp,
])[] = [
  ['kernel', 'uml', (t) => ({ kernel: program(t, script(silent)) }), /or name another kernel/],
  ['runsc', 'gvisor', useSilentRunsc, /or check the package runsc/],
];
for (const [what, engine, use, wayOut] of unanswering) {
  test(`a ${what} that never answers is ended at the limit, and nothing is left`, {
    skip: skipVm(engine),
  }, async (t) => {
    const failureAfter = (startTimeoutMs: number): Promise<Failure> =>
      failureOf(t, { engine, ...use(t) }, { startTimeoutMs, startRetryMs: 0 });
    let { message, cause } = await failureAfter(2000);
    // Words may take longer on a busy machine.
    if (cause === '') ({ message, cause } = await failureAfter(20_000));
    assert.match(message, /not ready after 20?000 ms: raise startTimeoutMs, /);
    assert.match(message, wayOut);
    assert.equal(cause, 'it begins');
    await waitFor(() => guestProcesses().length === 0 && sandboxProcesses().length === 0);
    await waitFor(() => groups().length === 0);
  });
}

for (const engine of ['uml', 'gvisor'] satisfies Engine[]) {
  test(`${engine}: a guest of the least memory starts`, { skip: skipVm(engine) }, async (t) => {
    const pool = vmPool(t, { engine, memoryMb: 64 });
    assert.equal(await pool.run((x: number) => x + 1, 1), 2);
  });

  test(`${engine}: a set-up that fails is no failure of the guest`, {
    skip: skipVm(engine),
  }, async (t) => {
    const pool = vmPool(t, { engine }, { setup: () => process.exit(7) });
    await assert.rejects(
      pool.run(() => 1),
      (error) => {
        assert.ok(hasCode(error, 'WORKER_START_FAILED'), String(error));
        assert.match(String(error), /exit code 7/);
        return true;
      },
    );
  });
}

test('more memory than the machine has is refused before any start', () => {
  const memoryMb = Math.floor(totalmem() / 2 ** 20) + 1;
  assert.throws(
    () => new Pool({ worker: { kind: 'vm', memoryMb } }),
    (error) => {
      assert.ok(hasCode(error, 'OPTION_INVALID'), String(error));
      assert.match(String(error), /worker\.memoryMb is \d+: it must be at most \d+, the MiB/);
      return true;
    },
  );
});

test('a kernel that panics under a call is named in its error', {
  skip: skipVm('uml'),
}, async (t) => {
  const pool = vmPool(t, { engine: 'uml' }, { onOutput: () => {} });
  await pool.warm();
  const call = pool.run(() => new Promise(() => {}));
  const tree = readTree(Number(pool.stats().workers[0]?.pid));
  const isKernel = (pid: number): boolean =>
    readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('/.manycore/linux');
  process.kill(tree.find(isKernel) ?? 0, 'SIGSEGV');
  await assert.rejects(call, (error) => {
    assert.ok(hasCode(error, 'WORKER_EXITED'), String(error));
    assert.match(String(error), /Kernel panic - /);
    return true;
  });
  assert.equal(await pool.run(() => 2), 2);
});
