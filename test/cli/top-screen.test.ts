// Screens of `manycore top` for made-up programs, and their changes by keys.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { screenOf } from '../../src/cli/commands/top/screen.js';
import { firstState, pressed, type State, sorted } from '../../src/cli/commands/top/state.js';
import { clean, type Line, tableLines } from '../../src/cli/commands/top/table.js';
import type { ProgramView, SummaryView } from '../../src/observe/index.js';

function program(pid: number, summary: Partial<SummaryView> = {}): ProgramView {
  return {
    pid,
    title: `/app/${pid}.js`,
    summary: {
      loops: 1,
      utilization: undefined,
      lagP99Ms: undefined,
      silentThreads: 0,
      workers: 0,
      busyWorkers: 0,
      waitingTasks: 0,
      tasksPerSecond: undefined,
      requestsPerSecond: undefined,
      lost: 0,
      cpuShare: undefined,
      rssBytes: undefined,
      ...summary,
    },
    threads: [],
    pools: [],
    servers: [],
    buses: [],
    memories: [],
  };
}

const size = { columns: 80, rows: 10 };

function press(state: State, key: string, programs: readonly ProgramView[]): State {
  const next = pressed(state, key, programs, 7);
  assert.ok(typeof next === 'object');
  return next;
}

const textOf = (line: Line | undefined): string => line?.map(({ text }) => text).join('') ?? '';

test('the busiest program is first, one that is silent is the latest', () => {
  const all = [
    program(1, { cpuShare: 0.1, lagP99Ms: 5 }),
    program(2, { cpuShare: 0.9, lagP99Ms: 1 }),
    program(3, { silentThreads: 1 }),
    program(4),
  ];
  const pids = (by: Parameters<typeof sorted>[1]) => sorted(all, by).map(({ pid }) => pid);
  assert.deepEqual(pids('cpu'), [2, 1, 3, 4]);
  assert.deepEqual(pids('lag'), [3, 1, 2, 4]);
  assert.deepEqual(pids('pid'), [1, 2, 3, 4]);
});

test('the chosen program stays chosen when another takes its place in the list', () => {
  const before = [program(1, { cpuShare: 0.9 }), program(2, { cpuShare: 0.1 })];
  const after = [program(1, { cpuShare: 0.1 }), program(2, { cpuShare: 0.9 })];
  const state = press(firstState(undefined), 'down', before);
  assert.equal(state.chosen, 2);
  const { lines } = screenOf(after, state, size);
  assert.match(textOf(lines[2]), /^> +2 /);
  assert.equal(press(state, 'return', after).opened, 2);
});

test('a list longer than the screen scrolls with what is chosen', () => {
  const all = Array.from({ length: 30 }, (_, at) => program(at + 1));
  const state = press(firstState(undefined), 'end', all);
  const { lines } = screenOf(all, state, size);
  assert.equal(lines.length, size.rows);
  assert.ok(lines.some((line) => /^> +30 /.test(textOf(line))));
  const first = screenOf(all, press(state, 'home', all), size);
  assert.ok(first.lines.some((line) => /^> +1 /.test(textOf(line))));
});

test('servers, units and buses of an opened program fit, at 60 columns too', () => {
  const loop = {
    process: 0,
    loop: 1,
    pid: 1234567,
    state: 'ready',
    utilization: 0.97,
    lagMs: 12.3,
    blockedMs: 0,
    openConnections: 123_456,
    requestsInFlight: 1234,
    requestsPerSecond: 98_765,
    rssBytes: 123_456_789,
    lastExit: 'exit code 1',
  };
  const stats = {
    loops: [loop, { ...loop, blockedMs: 12_345, lagMs: 99_999 }],
    openConnections: 5,
    requestsPerSecond: 98_765,
    turnedAway: 7,
    lostProcesses: 2,
  };
  const server = {
    ...stats,
    key: 'a',
    app: '/app/server.js',
    addresses: ['http://127.0.0.1:3000'],
    units: [],
  };
  const units = { ...stats, key: 'b', app: 'units', addresses: [], units: ['hello', 'other'] };
  const bus = {
    pid: 1234567,
    thread: 12,
    id: 1,
    sentPerSecond: 1_234_567,
    receivedPerSecond: 1_234_567,
    undelivered: 1_234_567,
    dropped: 1_234_567,
    failed: 1_234_567,
  };
  const all = [{ ...program(1), servers: [server, units], buses: [bus] }];
  const opened = press(press(firstState(undefined), 'home', all), 'return', all);
  for (const columns of [60, 80]) {
    const { lines } = screenOf(all, opened, { columns, rows: 40 });
    const texts = lines.map(textOf);
    for (const text of texts) assert.ok(text.length <= columns, `${columns}: ${text}`);
    const whole = texts.join('\n');
    assert.match(whole, /Server .*server\.js at http:\/\/127\.0\.0\.1:3000/);
    assert.match(whole, /Units hello, other/);
    assert.match(whole, /7 turned away|2 lost/);
    assert.match(whole, /blocked 12/);
    assert.match(whole, /Buses/);
    assert.match(whole, /^ *1234567 +12 /m);
  }
});

test('scrolling ends at the end of an opened program', () => {
  const all = [program(1)];
  const opened = press(firstState(undefined), 'return', all);
  const far = press(opened, 'end', all);
  const { state } = screenOf(all, far, size);
  assert.equal(state.scrolled, 0);
});

test('columns that matter less go first where there is little room', () => {
  const columns = [
    { head: 'a', text: () => 'aaaa' },
    { head: 'b', text: () => 'bbbb', spare: 1 },
    { head: 'c', text: () => 'cccc', spare: 2 },
  ];
  const headAt = (width: number) => textOf(tableLines(columns, [{}], width)[0]).replace(/ +/g, '');
  assert.equal(headAt(18), 'ABC');
  assert.equal(headAt(17), 'AB');
  assert.equal(headAt(11), 'A');
});

test('a name cannot steer the terminal', () => {
  assert.equal(clean('a\u001b[2Jb\nc\u202ed\ud800'), 'a?[2Jb?c?d?');
  assert.equal(clean('a\u061cb\u2028c\u2029d\u2067e\u200f\u009b'), 'a?b?c?d?e??');
  const evil = 'x\u001b]0;title\u0007\u061c\u2028y';
  const all = [{ ...program(1), title: evil }];
  for (const state of [firstState(undefined), firstState(1)]) {
    const text = screenOf(all, state, size).lines.map(textOf).join('\n');
    assert.match(text, /x\?\]0;title\?\?\?y/);
  }
});

test('at 60 columns the hints and the columns that are left are whole', () => {
  const pool = {
    ...{ pid: 1, thread: 0, id: 1, isSilent: false, channel: 'socket', workers: [] },
    ...{ busyWorkers: 64, waitingTasks: 10_000, runningTasks: 64, startedWorkers: 9 },
    ...{ tasksPerSecond: 12_000, failedPerSecond: 12_000, failedTasks: 5 },
    ...{ waitP50Ms: 9999, waitP99Ms: 9999, runP50Ms: 9999, runP99Ms: 9999 },
    ...{ endedWorkers: 1234, lostWorkers: 5678, partition: undefined },
  };
  const all = [{ ...program(1), pools: [pool] }];
  const narrow = { columns: 60, rows: 20 };
  const list = screenOf(all, { ...firstState(undefined), sort: 'requests' }, narrow);
  assert.equal(
    textOf(list.lines.at(-1)),
    'q quit   ? help   Enter open   s sort: requests   p pause',
  );
  const text = screenOf(all, firstState(1), narrow).lines.map(textOf).join('\n');
  assert.match(text, /LOST\n.* 5678\n/);
  assert.ok(!text.includes('~'));
});

test('workers have heap and collections where there is room, and nothing is cut', () => {
  const worker = {
    ...{ id: 12, kind: 'process', pid: 54_321, state: 'ready', inside: undefined },
    ...{ tasksInFlight: 1, tasksDone: 12_000, tasksPerSecond: 123 },
    ...{ cpuShare: 0.95, rssBytes: 162e6, heapUsedBytes: 61e6, heapLimitBytes: 4e9, gcShare: 0.12 },
  };
  const pool = {
    ...{ pid: 1, thread: 0, id: 1, isSilent: false, channel: 'socket', workers: [worker] },
    ...{ busyWorkers: 1, waitingTasks: 0, runningTasks: 1, startedWorkers: 1, failedTasks: 0 },
    ...{ tasksPerSecond: 1, failedPerSecond: 0, endedWorkers: 0, lostWorkers: 0 },
    ...{ waitP50Ms: 1, waitP99Ms: 1, runP50Ms: 1, runP99Ms: 1, partition: undefined },
  };
  const heads = (columns: number): string => {
    const all = [{ ...program(1), pools: [pool] }];
    const { lines } = screenOf(all, firstState(1), { columns, rows: 20 });
    const shown = lines.map(textOf);
    assert.ok(shown.every((line) => !line.includes('~')));
    return shown.find((line) => line.includes(' IN FLIGHT '))?.replaceAll(/ +/g, ' ') ?? '';
  };
  assert.match(heads(100), / DONE GC HEAP OF CPU MEM$/);
  assert.match(heads(80), / TASKS\/S GC HEAP OF CPU MEM$/);
  assert.match(heads(60), / TASKS\/S CPU MEM$/);
});

test('partitions are a tree below their pool, with their limits', () => {
  const mib = 2 ** 20;
  const inside = (pid: number, depth: number, name = 'node') => {
    return { pid, name, depth, cpuShare: 0.5, rssBytes: 40 * mib };
  };
  const worker = (id: number, pid: number, all: ReturnType<typeof inside>[]) => ({
    ...{ id, kind: 'sandbox', pid, state: 'ready', tasksInFlight: 1, tasksDone: 1 },
    ...{ tasksPerSecond: 1, cpuShare: 1, rssBytes: 85 * mib, inside: all },
    ...{ heapUsedBytes: undefined, heapLimitBytes: undefined, gcShare: undefined },
  });
  const workers = [
    worker(1, 20, [inside(23, 0), inside(24, 1, 'a\u001bb'), inside(25, 2), inside(26, 1)]),
    worker(2, 30, [inside(33, 0), inside(34, 0)]),
  ];
  const pool = {
    ...{ pid: 1, thread: 0, id: 1, isSilent: false, channel: 'socket', workers },
    ...{ busyWorkers: 2, waitingTasks: 0, runningTasks: 2, startedWorkers: 2, failedTasks: 0 },
    ...{ tasksPerSecond: 1, failedPerSecond: 0, endedWorkers: 0, lostWorkers: 0 },
    ...{ waitP50Ms: 1, waitP99Ms: 1, runP50Ms: 1, runP99Ms: 1 },
    partition: { memoryBytes: 256 * mib, cpuShare: 1.5, maxProcesses: 3 },
  };
  const { lines } = screenOf([{ ...program(1), pools: [pool] }], firstState(1), {
    columns: 80,
    rows: 40,
  });
  const shown = lines.map((line) => textOf(line).trimEnd());
  const at = shown.indexOf('Partitions of pool 1');
  assert.deepEqual(shown.slice(at + 1, at + 11), [
    '  PROCESS           PID   CPU    OF  MEM    OF  MAX THREADS',
    '  pool 1              1     -          -',
    '  |- sandbox 1       20  100%  150%  85M  256M          256',
    '  |  `- node         23   50%        40M',
    '  |     |- a?b       24   50%        40M',
    '  |     |  `- node   25   50%        40M',
    '  |     `- node      26   50%        40M',
    '  `- sandbox 2       30  100%  150%  85M  256M          256',
    '     |- node         33   50%        40M',
    '     `- node         34   50%        40M',
  ]);
});

test('before the first poll it shows that, and without a program, too', () => {
  const shown = (programs: readonly ProgramView[] | undefined) =>
    screenOf(programs, firstState(undefined), size).lines.map(textOf).join('\n');
  assert.match(shown(undefined), /searching for programs/);
  assert.match(shown([]), /no program that uses manycore runs/);
});
