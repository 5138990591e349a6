// Reports of blocked loops, on made-up rows: loops of a process that starts, or is stopped, are not blocked.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { boardAt, Row } from '../../../src/serve/shared/board.js';
import { Liveness } from '../../../src/serve/supervisor/liveness.js';
import { announced } from '../served.js';

const stack = [
  '    at spin (node:internal/timers:5:6)',
  '    at Worker.handle (file:///app/unit.js:12:3)',
  '    at file:///app/main.js:1:1',
].join('\n');

function watch(t: TestContext, { blockedTimeoutMs = 15_000 } = {}) {
  const row = new Row(new ArrayBuffer(boardAt.headerBytes + boardAt.rowBytes), 0, 0);
  row.state = 'ready';
  let requested = 0;
  const process = {
    number: 0,
    pid: 77,
    state: 'ready',
    servedMs: 60_000,
    stackOf: async () => {
      requested += 1;
      return stack;
    },
    kill: (why: string) => void kills.push(why),
  };
  const nowMs = 1_000_000;
  const board = { rows: [[row]], nowMs: () => nowMs };
  const stops: unknown[] = [];
  const kills: string[] = [];
  const liveness = new Liveness<typeof process>(board, { blockedTimeoutMs }, ({ pid }) => {
    stops.push(pid);
  });
  const reports = announced(t, 'manycore:server:blocked');
  const ago = (ms: number): number => nowMs - ms;
  /** Checks a loop that is silent for `silentMs`, in a process that answered `answeredMs` ago. */
  const check = async (silentMs: number, answeredMs = 50): Promise<number> => {
    row.set(boardAt.pingedSince, silentMs === 0 ? 0 : ago(silentMs));
    row.set(boardAt.idleWrittenAt, ago(answeredMs));
    liveness.checkStopped([process]);
    const stay = liveness.reportBlocked([process]);
    await new Promise((resolve) => setImmediate(resolve));
    return stay.length;
  };
  return { check, reports, stops, kills, process, row, requested: () => requested };
}

test('a blocked loop is reported at two seconds, at five, and each time its silence has doubled', async (t) => {
  const { check, reports } = watch(t);
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
    await check(ms);
    assert.equal(reports.length, count, `after ${ms} ms`);
  }
});

test('a report names the innermost place in a file', async (t) => {
  const { check, reports } = watch(t);
  await check(2100);
  const [{ blockedMs, ...rest } = {}] = reports;
  assert.deepEqual(rest, { pid: 77, loop: 0, place: 'file:///app/unit.js:12:3', stack });
  assert.ok(Number(blockedMs) >= 2100);
});

test('a loop that has come back begins anew', async (t) => {
  const { check, reports } = watch(t);
  await check(2100);
  await check(0);
  await check(2100);
  assert.equal(reports.length, 2);
});

test('a loop that starts or drains is not reported', async (t) => {
  const { check, reports, process, row } = watch(t);
  process.state = 'starting';
  await check(9000);
  process.state = 'ready';
  row.state = 'draining';
  await check(9000);
  assert.deepEqual(reports, []);
  row.state = 'ready';
  await check(9000);
  assert.equal(reports.length, 1);
});

test('a process that is stopped has no blocked loop, and none when it goes on', async (t) => {
  const { check, reports } = watch(t);
  for (const ms of [2000, 3000, 9000, 20_000]) assert.equal(await check(ms, ms), 0);
  assert.equal(await check(20_500), 0); // it goes on, and its loop has not answered yet
  assert.deepEqual(reports, []);
  assert.equal(await check(22_600), 0);
  assert.equal(reports.length, 1); // blocked, since it went on
  assert.equal(await check(30_000), 0);
  assert.equal(await check(35_500), 1);
});

test('a process that is stopped is noted once each time', async (t) => {
  const { check, stops } = watch(t);
  await check(0, 1900);
  assert.deepEqual(stops, []);
  await check(0, 2100);
  await check(0, 3100);
  assert.deepEqual(stops, [77]);
  await check(0);
  await check(0, 2100);
  assert.deepEqual(stops, [77, 77]);
});

test('a process is killed that is stopped for longer than its limit, and for two seconds', async (t) => {
  for (const [blockedTimeoutMs, ms, count] of [
    [15_000, 14_900, 0],
    [15_000, 15_100, 1],
    [1000, 1900, 0], // it is rung each second, and may answer late
    [1000, 2100, 1],
  ] as const) {
    const { check, kills } = watch(t, { blockedTimeoutMs });
    await check(0, ms);
    assert.equal(kills.length, count, `${blockedTimeoutMs}, ${ms} ms`);
  }
});

test('a loop that is blocked too long is returned once it was reported', async (t) => {
  const { check, reports } = watch(t, { blockedTimeoutMs: 1000 });
  assert.equal(await check(900), 0);
  assert.equal(await check(1100), 0);
  assert.equal(reports.length, 1);
  assert.equal(await check(2100), 1);
});

test('a stack is not requested while the last request is pending', async (t) => {
  const { check, process, requested } = watch(t);
  let answer = (): void => {};
  const { stackOf } = process;
  process.stackOf = async () => {
    const given = await stackOf();
    await new Promise<void>((resolve) => {
      answer = resolve;
    });
    return given;
  };
  await check(2100);
  await check(5100);
  assert.equal(requested(), 1);
  answer();
  await check(6100);
  await check(6200);
  assert.equal(requested(), 2);
});
