// When a loop is told of as blocked, seen on made-up rows: those of a process that starts, or is stopped, are
// not blocked.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { nativeBinding, requireNative } from '../../src/native.js';
import { boardAt, Row } from '../../src/serve/board.js';
import { Silence } from '../../src/serve/silence.js';
import { announced } from './served.js';

const skip = nativeBinding() === undefined && 'needs the native binary';
const stack = [
  '    at spin (node:internal/timers:5:6)',
  '    at Worker.handle (file:///app/unit.js:12:3)',
  '    at file:///app/main.js:1:1',
].join('\n');

function watch(t: TestContext, { blockedTimeoutMs = 15_000 } = {}) {
  const row = new Row(new ArrayBuffer(boardAt.headerBytes + boardAt.rowBytes), 0, 0);
  row.state = 'ready';
  let asked = 0;
  const process = {
    number: 0,
    pid: 77,
    state: 'ready',
    servedMs: 60_000,
    stackOf: async () => {
      asked += 1;
      return stack;
    },
    kill: () => {},
  };
  const silence = new Silence<typeof process>([[row]], { blockedTimeoutMs });
  const told = announced(t, 'manycore:server:blocked');
  const ago = (ms: number): number => (requireNative().boardNowMs() - ms) >>> 0;
  /** Looks at a loop that is silent for so long, in a process that was heard so long ago. */
  const look = async (silentMs: number, heardMs = 50): Promise<number> => {
    row.set(boardAt.pingedSince, silentMs === 0 ? 0 : ago(silentMs));
    row.set(boardAt.idleWrittenAt, ago(heardMs));
    const stay = silence.tellBlocked([process]);
    await new Promise((resolve) => setImmediate(resolve));
    return stay.length;
  };
  return { look, told, process, row, asked: () => asked };
}

test('a loop is told of at two seconds, at five, and each time its silence has doubled', {
  skip,
}, async (t) => {
  const { look, told } = watch(t);
  for (const [ms, count] of [
    [1500, 0],
    [2100, 1],
    [3100, 1],
    [4100, 1],
    [5100, 2],
    [6100, 2],
    [10_100, 2],
    [10_300, 3],
    [14_000, 3],
  ] as const) {
    await look(ms);
    assert.equal(told.length, count, `after ${ms} ms`);
  }
});

test('where it is is the innermost place in a file', { skip }, async (t) => {
  const { look, told } = watch(t);
  await look(2100);
  const [{ blockedMs, ...rest } = {}] = told;
  assert.deepEqual(rest, { pid: 77, loop: 0, place: 'file:///app/unit.js:12:3', stack });
  assert.ok(Number(blockedMs) >= 2100);
});

test('a loop that has come back begins anew', { skip }, async (t) => {
  const { look, told } = watch(t);
  await look(2100);
  await look(0);
  await look(2100);
  assert.equal(told.length, 2);
});

test('a loop that starts or drains is not told of', { skip }, async (t) => {
  const { look, told, process, row } = watch(t);
  process.state = 'starting';
  await look(9000);
  process.state = 'ready';
  row.state = 'draining';
  await look(9000);
  assert.deepEqual(told, []);
  row.state = 'ready';
  await look(9000);
  assert.equal(told.length, 1);
});

test('a process that is stopped has no blocked loop, and none when it goes on', {
  skip,
}, async (t) => {
  const { look, told } = watch(t);
  for (const ms of [2000, 3000, 9000, 20_000]) assert.equal(await look(ms, ms), 0);
  assert.equal(await look(20_500), 0); // it goes on, and its loop has not answered yet
  assert.deepEqual(told, []);
  assert.equal(await look(22_600), 0);
  assert.equal(told.length, 1); // blocked, since it went on
  assert.equal(await look(30_000), 0);
  assert.equal(await look(35_500), 1);
});

test('who is blocked too long is named once it was told of', { skip }, async (t) => {
  const { look, told } = watch(t, { blockedTimeoutMs: 1000 });
  assert.equal(await look(900), 0);
  assert.equal(await look(1100), 0);
  assert.equal(told.length, 1);
  assert.equal(await look(2100), 1);
});

test('a stack is not asked for while it is being asked for', { skip }, async (t) => {
  const { look, process, asked } = watch(t);
  let answer = (): void => {};
  const { stackOf } = process;
  process.stackOf = async () => {
    const given = await stackOf();
    await new Promise<void>((resolve) => {
      answer = resolve;
    });
    return given;
  };
  await look(2100);
  await look(5100);
  assert.equal(asked(), 1);
  answer();
  await look(6100);
  await look(6200);
  assert.equal(asked(), 2);
});
