// Functions in sandboxes and virtual machines of their own, and code that arrives as text.

import assert from 'node:assert/strict';
import { release } from 'node:os';
import { test } from 'node:test';
import { hasCode } from '../../src/errors.js';
import { defer } from '../../src/lib/index.js';
import { runSource, sandboxed } from '../../src/public.js';
import { waitFor } from '../support/index.js';
import { commandOf, type Engine, sandboxProcesses, skip, skipVm } from './support.js';

test('a function runs in a sandbox of its own, with its captures', { skip }, async () => {
  const rate = 0.25;
  await using tax = sandboxed((sum: number) => sum * rate);
  assert.deepEqual(await Promise.all([tax(100), tax(8)]), [25, 2]);
  await using where = sandboxed(() => [process.pid, process.getuid?.()]);
  assert.deepEqual(await where(), [2, 65_534]);
});

test('a call that takes too long ends its sandbox, and the next one works', { skip }, async () => {
  await using loop = sandboxed(
    (most: number) => {
      for (let at = 0; at < most; at += 1) Math.sqrt(at);
      return most;
    },
    { timeoutMs: 200 },
  );
  await assert.rejects(loop(Number.POSITIVE_INFINITY), (error) => hasCode(error, 'TASK_TIMED_OUT'));
  assert.equal(await loop(3), 3);
});

const sources: readonly [source: string, expected: unknown][] = [
  ['a * b + 1', 43],
  ['const sum = a + b; return sum', 13],
  ['({ a, list: [b] })', { a: 6, list: [7] }],
  ['await Promise.resolve(a)', 6],
  ['return await twice(a) + await twice(b)', 26],
  ['Math.max(a, b) // a comment', 7],
  ['typeof require', 'undefined'],
  ['process.getuid()', 65_534],
  ['(await import("node:fs")).existsSync("/etc/passwd")', false],
  ['', undefined],
  ['// nothing', undefined],
  ['new Date(5)', new Date(5)],
];
for (const [source, expected] of sources) {
  test(`the source ${JSON.stringify(source)} is run`, { skip }, async () => {
    const args = { a: 6, b: 7 };
    const functions = { twice: (value: number) => value * 2 };
    assert.deepEqual(await runSource(source, { args, functions }), expected);
  });
}

test('each source has a sandbox to itself', { skip }, async () => {
  const count = 'globalThis.count = (globalThis.count ?? 0) + 1';
  const counts = [];
  for (let round = 0; round < 3; round += 1) counts.push(await runSource(count));
  assert.deepEqual(counts, [1, 1, 1]);
});

test('a given function gets data, and its failure is an error there', { skip }, async () => {
  const got: unknown[] = [];
  const functions = {
    save: (...given: unknown[]) => {
      got.push(...given);
      if (given.length > 1) throw Object.assign(new RangeError('too many'), { code: 'MANY' });
      return new Map([['saved', given.length]]);
    },
  };
  assert.deepEqual(await runSource('save({ a: [1n] })', { functions }), new Map([['saved', 1]]));
  const failure =
    'try { await save(1, 2) } catch (error) { return [error.name, error.message, error.code] }';
  assert.deepEqual(await runSource(failure, { functions }), ['RangeError', 'too many', 'MANY']);
  assert.deepEqual(got, [{ a: [1n] }, 1, 2]);
  await assert.rejects(runSource('save(() => 1)', { functions }), (error) =>
    hasCode(error, 'PARTITION_CODE'),
  );
});

test('a failure of the code is that of the call', { skip }, async () => {
  await assert.rejects(runSource('throw new TypeError("as thrown")'), {
    name: 'TypeError',
    message: 'as thrown',
  });
  await assert.rejects(runSource('a +'), { name: 'SyntaxError' });
  await assert.rejects(runSource('() => 1'), (error) => hasCode(error, 'PARTITION_CODE'));
  await assert.rejects(runSource('for (;;);', { timeoutMs: 100 }), (error) =>
    hasCode(error, 'TASK_TIMED_OUT'),
  );
});

const wrong: readonly [options: object, named: RegExp][] = [
  [{ timeoutMs: -1 }, /timeoutMs/],
  [{ args: 5 }, /args/],
  [{ args: { 'a b': 1 } }, /args/],
  [{ functions: { f: 1 } }, /functions\.f/],
  [{ functions: { f: () => 1 }, args: { f: 1 } }, /args/],
  [{ memory: 5 }, /memory/],
  [{ memoryMb: 1 }, /memoryMb/],
  [{ read: ['x'] }, /read/],
  [{ kind: 'process' }, /kind is "process"/],
  [{ engine: 'uml' }, /engine/],
  [{ kind: 'vm', network: 'host' }, /network/],
  [{ kind: 'vm', engine: 'xen' }, /engine/],
  [{ kind: 'vm', kernel: 'linux' }, /kernel/],
  [{ kind: 'vm', core: -1 }, /core/],
];
for (const [options, named] of wrong) {
  test(`runSource and sandboxed refuse ${JSON.stringify(options)}`, { skip }, async () => {
    const isNamed = (error: unknown): boolean => {
      assert.ok(hasCode(error, 'OPTION_INVALID'));
      assert.match(String(error), named);
      return true;
    };
    await assert.rejects(runSource('1', options), isNamed);
    if ('args' in options || 'functions' in options) return;
    assert.throws(() => sandboxed(() => 1, options), isNamed);
  });
}

test('calls of a function that never answers are limited', { skip }, async () => {
  const functions = { wait: () => new Promise(() => {}) };
  await assert.rejects(
    runSource('await Promise.all(Array.from({ length: 1500 }, () => wait()))', { functions }),
    /reports 1001 times before an answer/,
  );
});

const engines: readonly Engine[] = ['uml', 'gvisor'];
for (const engine of engines) {
  test(`${engine}: sources and functions run in virtual machines, too`, {
    skip: skipVm(engine),
  }, async () => {
    const vm = { kind: 'vm', engine } as const;
    const rate = 0.25;
    await using tax = sandboxed((sum: number) => [sum * rate, process.env['MARK']], {
      ...vm,
      env: { MARK: engine },
      timeoutMs: 30_000,
    });
    assert.deepEqual(await tax(100), [25, engine]);
    const functions = { twice: (value: number) => value * 2 };
    const options = { ...vm, functions, args: { a: 6 }, timeoutMs: 30_000 };
    const isGuest = `(await import("node:os")).release() !== ${JSON.stringify(release())}`;
    const count = '(globalThis.count = (globalThis.count ?? 0) + 1)';
    const source = `[await twice(a), ${isGuest}, ${count}]`;
    for (let round = 0; round < 2; round += 1) {
      assert.deepEqual(await runSource(source, options), [12, true, 1]);
    }
    await assert.rejects(runSource('() => 1', options), (error) =>
      hasCode(error, 'PARTITION_CODE'),
    );
  });
}

/** Counts sandboxes by the memory that their options name, in MiB. */
function sandboxesOf(memoryMb: number): number {
  const words = `\0--memory\0${memoryMb * 2 ** 20}\0`;
  return sandboxProcesses().filter((pid) => commandOf(pid).includes(words)).length;
}

test('of more than eight sets of options the oldest closes, after its calls', {
  skip,
}, async () => {
  const [least, sets] = [131, 9];
  const [begun, released] = [defer<void>(), defer<string>()];
  const functions = {
    wait: () => {
      begun.resolve();
      return released.promise;
    },
  };
  const oldest = runSource('await wait()', { memoryMb: least, functions, timeoutMs: 60_000 });
  await begun.promise;
  for (let more = 1; more < sets; more += 1) {
    assert.equal(await runSource('1 + 1', { memoryMb: least + more }), 2);
  }
  released.resolve('late');
  assert.equal(await oldest, 'late');
  await waitFor(() => sandboxesOf(least) === 0);
  assert.ok(sandboxesOf(least + sets - 1) > 0);
  assert.equal(await runSource('2 + 2', { memoryMb: least }), 4); // with a pool of its own again
});

test('answers that are not read end the sandbox before they fill the memory of the program', {
  skip,
}, async () => {
  const given = defer<Buffer>();
  let reports = 0;
  const functions = {
    give: () => {
      reports += 1;
      if (reports === 600) given.resolve(Buffer.alloc(2 ** 20, 1)); // answers all of them at once
      return given.promise;
    },
  };
  const before = process.resourceUsage().maxRSS;
  const source = 'for (let at = 0; at < 600; at += 1) void give(); for (;;);';
  const never = runSource(source, { functions, timeoutMs: 60_000 });
  await assert.rejects(never, (error) => {
    assert.match(String(error), /reports, and reads no answer/);
    return true;
  });
  // 64 MiB wait, and the ring holds some; there were 600 MiB.
  const grownMb = (process.resourceUsage().maxRSS - before) / 2 ** 10;
  assert.ok(grownMb < 300, `the program has grown by ${grownMb} MiB`);
});
