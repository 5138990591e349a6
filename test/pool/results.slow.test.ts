import assert from 'node:assert/strict';
import { test } from 'node:test';
import { task } from '../../src/public.js';
import { openPool, ways } from './calls/ways.js';
import { spinMs, Temperature, TooHotError } from './tasks.js';

for (const way of ways) {
  test(`${way.name}: results arrive as they were returned`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const given = {
      number: -0.5,
      big: 2n ** 70n,
      text: 'ø 😀',
      list: [1, null, undefined],
      map: new Map([[{ a: 1 }, new Set([1, 2])]]),
      date: new Date(5),
      bytes: new Uint8Array([1, 2, 3]),
      pattern: /a+/gi,
    };
    const [first, second] = await pool.run((value: typeof given) => [value, value], given);
    assert.deepEqual(first, given);
    assert.equal(first, second);
    for (const value of [undefined, null, '', 0, Number.NaN, false]) {
      assert.deepEqual(await pool.run((same: unknown) => same, value), value);
    }
  });

  test(`${way.name}: a function runs with what it captured`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const constant = { factor: 3 };
    let changing = 1;
    const double = (value: number): number => value * 2;
    const work = (value: number): number => double(value) * constant.factor + changing;
    assert.equal(await pool.run(work, 5), 31);
    changing = 2;
    assert.equal(await pool.run(work, 5), 32);
  });

  test(`${way.name}: what the caller changes after the call does not reach the task`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const argument = { list: [1] };
    let captured = 1;
    const results = Array.from({ length: 3 }, (_, round) => {
      const result = pool.run((value: typeof argument) => [...value.list, captured], argument);
      argument.list.push(round);
      captured += 1;
      return result;
    });
    assert.deepEqual(await Promise.all(results), [
      [1, 1],
      [1, 0, 2],
      [1, 0, 1, 3],
    ]);
  });

  test(`${way.name}: an instance of a class arrives as an instance, both ways`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const warmer = await pool.run(
      (temperature: Temperature) => new Temperature(temperature.fahrenheit),
      new Temperature(10),
    );
    assert.ok(warmer instanceof Temperature);
    assert.equal(warmer.celsius, 50);
  });

  test(`${way.name}: what a task throws arrives with class, code, cause and fields`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const failing = pool.run(() => {
      throw new TooHotError(new Temperature(99), { cause: new TypeError('why') });
    });
    await assert.rejects(failing, (error: unknown) => {
      assert.ok(error instanceof TooHotError && error instanceof RangeError);
      assert.deepEqual([error.code, error.message], ['TOO_HOT', '99 degrees']);
      assert.ok(error.temperature instanceof Temperature);
      assert.ok(error.cause instanceof TypeError);
      assert.equal(error.cause.message, 'why');
      return true;
    });
    assert.equal(await pool.run(() => 'still there'), 'still there');
  });

  test(`${way.name}: a stack names the line that threw, the worker, and the caller's line`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    async function callerOfTheTask(): Promise<void> {
      await pool.run(function deepInTheTask() {
        throw new Error('with a stack');
      });
    }
    await assert.rejects(callerOfTheTask(), (error: Error) => {
      const lines = error.stack?.split('\n') ?? [];
      const thrown = lines.findIndex((line) => /deepInTheTask.*results\.slow\.test\./.test(line));
      const worker = lines.findIndex((line) => /at \[worker \d+/.test(line));
      const caller = lines.findIndex((line) => /callerOfTheTask.*results\.slow\.test\./.test(line));
      assert.ok(thrown > 0 && thrown < worker && worker < caller, error.stack);
      assert.equal(lines[0], 'Error: with a stack');
      return true;
    });
  });

  test(`${way.name}: the error of a generator has the frames of the worker and of its reader`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    await pool.warm();
    async function readerOfTheStream(): Promise<void> {
      const begun = pool.run(function* deepInTheGenerator() {
        yield 1;
        throw new Error('in the middle');
      });
      spinMs(200); // all of it comes at a time
      const stream = await begun;
      for await (const item of stream) assert.equal(item, 1);
    }
    await assert.rejects(readerOfTheStream(), (error: Error) => {
      assert.match(
        error.stack ?? '',
        /in the middle\n.*deepInTheGenerator[^]*\[worker \d+[^]*readerOfTheStream.*results\.slow\.test/,
      );
      return true;
    });
  });

  test(`${way.name}: WORKER_EXITED has the frames of the caller`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    async function callerOfTheExit(): Promise<void> {
      await pool.run(() => process.exit(3));
    }
    await assert.rejects(callerOfTheExit(), (error: Error & { code?: string }) => {
      assert.equal(error.code, 'WORKER_EXITED');
      assert.match(error.stack ?? '', /\[worker \d+[^]*callerOfTheExit.*results\.slow\.test/);
      return true;
    });
  });

  test(`${way.name}: an async task resolves with its value and rejects with its error`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const later = async (value: number): Promise<number> => {
      await new Promise((resolve) => setImmediate(resolve));
      if (value < 0) throw new RangeError('negative');
      return value + 1;
    };
    assert.equal(await pool.run(later, 1), 2);
    await assert.rejects(pool.run(later, -1), RangeError);
  });

  test(`${way.name}: a task named by module and export runs in the worker`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const add = task<(a: number, b: number) => number>(
      new URL('./tasks.js', import.meta.url),
      'add',
    );
    assert.equal(await pool.run(add, 2, 3), 5);
    const missing = task(new URL('./tasks.js', import.meta.url), 'subtract');
    await assert.rejects(pool.run(missing), { code: 'TRANSFER_IMPORT_FAILED' });
  });

  test(`${way.name}: a hundred thousand bytes and an empty text arrive whole`, async (t) => {
    const pool = openPool(t, { size: 1 }, way);
    const long = 'å'.repeat(100_000);
    assert.equal(await pool.run((text: string) => text + text, long), long + long);
    const bytes = Buffer.alloc(1_000_003, 7);
    assert.deepEqual(await pool.run((given: Buffer) => Buffer.from(given), bytes), bytes);
    assert.equal(await pool.run((text: string) => text, ''), '');
  });

  test(`${way.name}: a thousand calls at once each get their own result`, async (t) => {
    const pool = openPool(t, { size: 2 }, way);
    const calls = Array.from({ length: 1000 }, (_, index) =>
      pool.run((value: number) => value * 2, index),
    );
    const expected = Array.from({ length: 1000 }, (_, index) => index * 2);
    assert.deepEqual(await Promise.all(calls), expected);
    assert.equal(pool.stats().completedTasks, 1000);
  });
}

test('a captured variable may hold another function at each call', async (t) => {
  const pool = openPool(t, { size: 1 });
  let operation = (value: number): number => value + 1;
  const work = (value: number): number => operation(value);
  assert.equal(await pool.run(work, 5), 6);
  operation = (value) => value - 1;
  assert.equal(await pool.run(work, 5), 4);
  const factor = 10;
  operation = (value) => value * factor;
  assert.equal(await pool.run(work, 5), 50);
});
