// Views from two polls with made-up stats.
// Long (over 400 lines), because the rows of a view are made from one set of such stats.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ThreadStats } from '../../src/agent/index.js';
import type { FoundServer, Program } from '../../src/observe/programs.js';
import { type Poll, partitionPids, pidsOf, viewOf } from '../../src/observe/views/view.js';

const mib = 2 ** 20;
const noGc = { count: 0, totalMs: 0, maxMs: 0 };

function thread(changes: Partial<ThreadStats> = {}): ThreadStats {
  return {
    pid: 10,
    thread: 0,
    title: '/app/main.js',
    node: '20.20.2',
    version: '0.1.0',
    uptimeMs: 5000,
    loop: { idleMs: 4000, activeMs: 1000, lag: { p50Ms: 1, p99Ms: 9, maxMs: 12, worstMs: 12 } },
    heap: { usedBytes: 3 * mib, totalBytes: 5 * mib, limitBytes: 100 * mib, externalBytes: 0 },
    gc: { minor: noGc, major: noGc, incremental: noGc, weakCallbacks: noGc },
    process: { rssBytes: 50 * mib, userMs: 900, systemMs: 100 },
    captures: { count: 0, totalMs: 0 },
    sources: [],
    ...changes,
  };
}

function program(changes: Partial<Program> = {}): Program {
  return {
    pid: 10,
    title: '/app/main.js',
    servers: [],
    threads: [thread()],
    silent: [],
    ...changes,
  };
}

function poll(
  atMs: number,
  programs: Program[],
  usage: Poll['usage'] = new Map(),
  trees: Poll['trees'] = new Map(),
): Poll {
  return { atMs, programs, usage, trees };
}

function pool(stats: object): ThreadStats['sources'][number] {
  return { kind: 'pool', id: 1, stats };
}

test('the first poll has no rates, and has momentary values', () => {
  const [view] = viewOf(poll(0, [program()]), undefined);
  const [main] = view?.threads ?? [];
  assert.equal(main?.utilization, undefined);
  assert.equal(main?.gcShare, undefined);
  assert.equal(main?.cpuShare, undefined);
  assert.equal(main?.role, 'main');
  assert.equal(main?.lagP99Ms, 9);
  assert.equal(main?.rssBytes, 50 * mib);
  assert.equal(view?.summary.lagP99Ms, 9);
  assert.equal(view?.summary.loops, 1);
});

test('utilization, garbage and CPU of a loop are those between the polls', () => {
  const later = thread({
    uptimeMs: 7000,
    loop: { idleMs: 4500, activeMs: 2500, lag: undefined },
    gc: {
      minor: { count: 3, totalMs: 100, maxMs: 40 },
      major: { count: 1, totalMs: 400, maxMs: 400 },
      incremental: noGc,
      weakCallbacks: noGc,
    },
    process: { rssBytes: 60 * mib, userMs: 2400, systemMs: 600 },
  });
  const before = poll(0, [program()]);
  const [view] = viewOf(poll(2000, [program({ threads: [later] })]), before);
  const [main] = view?.threads ?? [];
  assert.equal(main?.utilization, 0.75);
  assert.equal(main?.gcShare, 0.25);
  assert.equal(main?.gcMaxMs, 400);
  assert.equal(main?.cpuShare, 1);
  assert.equal(view?.summary.utilization, 0.75);
});

test('CPU and memory come from the system where it has them, those of workers always', () => {
  const workers = [
    { id: 1, kind: 'process', pid: 20, state: 'ready', tasksInFlight: 1, tasksDone: 5 },
    { id: 2, kind: 'thread', pid: 10, state: 'ready', tasksInFlight: 0, tasksDone: 5 },
  ];
  const one = program({ threads: [thread({ sources: [pool({ workers })] })] });
  assert.deepEqual([...pidsOf([one], new Map())], [10, 20]);
  const usage = (ownMs: number, workerMs: number): Poll['usage'] =>
    new Map([
      [10, { cpuMs: ownMs, rssBytes: 70 * mib }],
      [20, { cpuMs: workerMs, rssBytes: 30 * mib }],
    ]);
  const later = program({ threads: [thread({ uptimeMs: 6000, sources: [pool({ workers })] })] });
  const [view] = viewOf(poll(1000, [later], usage(600, 900)), poll(0, [one], usage(500, 100)));
  assert.equal(view?.threads[0]?.cpuShare, 0.1);
  assert.equal(view?.threads[0]?.rssBytes, 70 * mib);
  const [process, inThread] = view?.pools[0]?.workers ?? [];
  assert.equal(process?.cpuShare, 0.8);
  assert.equal(process?.rssBytes, 30 * mib);
  assert.equal(inThread?.pid, undefined);
  assert.equal(inThread?.cpuShare, undefined);
  assert.ok(Math.abs((view?.summary.cpuShare ?? 0) - 0.9) < 1e-9);
  assert.equal(view?.summary.rssBytes, 100 * mib);
});

test('a worker has the heap of its last report, and the share of collections between its reports', () => {
  const reported = (atMs: number, usedBytes: number, gcMs: number): object => {
    const pauses = { count: 1, totalMs: gcMs / 2, maxMs: 1 };
    const heap = { usedBytes, totalBytes: 9, limitBytes: 2048 * mib, externalBytes: 9 };
    return { atMs, heap, gc: { minor: pauses, major: pauses } };
  };
  const at = (uptimeMs: number, memory: unknown): Program => {
    const worker = {
      id: 1,
      kind: 'thread',
      state: 'ready',
      tasksInFlight: 1,
      tasksDone: 2,
      memory,
    };
    return program({ threads: [thread({ uptimeMs, sources: [pool({ workers: [worker] })] })] });
  };
  const seen = (now: unknown, before: unknown) => {
    const [view] = viewOf(poll(2000, [at(7000, now)]), poll(0, [at(5000, before)]));
    const { heapUsedBytes, heapLimitBytes, gcShare } = view?.pools[0]?.workers[0] ?? {};
    return [heapUsedBytes, heapLimitBytes, gcShare];
  };
  const limit = 2048 * mib;
  assert.deepEqual(seen(reported(3000, 8 * mib, 500), reported(1000, 5, 100)), [
    8 * mib,
    limit,
    0.2,
  ]);
  const same = reported(3000, 8 * mib, 500);
  assert.deepEqual(seen(same, same), [8 * mib, limit, undefined]);
  assert.deepEqual(seen(same, undefined), [8 * mib, limit, undefined]);
  assert.deepEqual(seen(undefined, same), [undefined, undefined, undefined]);
});

test('a pool has its tasks per second, and so has each of its workers', () => {
  const stats = (done: number, failed: number, of: readonly number[]): object => ({
    channel: 'shm',
    workers: of.map((tasksDone, at) => ({
      id: at + 1,
      kind: 'thread',
      state: 'ready',
      tasksInFlight: at,
      tasksDone,
    })),
    startedWorkers: 4,
    exitedWorkers: 2,
    waitingTasks: 7,
    runningTasks: 1,
    completedTasks: done,
    failedTasks: failed,
    waited: { p50Ms: 1, p99Ms: 2 },
    ran: { p50Ms: 3, p99Ms: 4 },
  });
  const at = (uptimeMs: number, of: object): Program =>
    program({ threads: [thread({ uptimeMs, sources: [pool(of)] })] });
  const [view] = viewOf(
    poll(2000, [at(7000, stats(300, 20, [150, 170]))]),
    poll(0, [at(5000, stats(100, 10, [50, 60]))]),
  );
  const [found] = view?.pools ?? [];
  assert.equal(found?.tasksPerSecond, 105);
  assert.equal(found?.failedPerSecond, 5);
  assert.deepEqual(
    found?.workers.map(({ tasksPerSecond }) => tasksPerSecond),
    [50, 55],
  );
  assert.equal(found?.busyWorkers, 1);
  assert.equal(found?.endedWorkers, 2);
  assert.equal(found?.waitP99Ms, 2);
  assert.equal(found?.runP99Ms, 4);
  assert.equal(view?.summary.waitingTasks, 7);
  assert.equal(view?.summary.workers, 2);
  assert.equal(view?.summary.busyWorkers, 1);
});

test('missing counts of a pool of another version are 0', () => {
  const [view] = viewOf(
    poll(0, [program({ threads: [thread({ sources: [pool({})] })] })]),
    undefined,
  );
  assert.deepEqual(view?.pools[0]?.workers, []);
  assert.equal(view?.pools[0]?.waitingTasks, 0);
  assert.equal(view?.pools[0]?.runP99Ms, 0);
});

function server(requests: number, changes: Partial<FoundServer> = {}): FoundServer {
  return {
    answeredMs: 0,
    pid: 10,
    name: 'app',
    app: '/app/main.js',
    startedAtMs: 0,
    lostProcesses: 0,
    addresses: [{ address: '::', port: 3000, family: 'IPv6' }],
    loops: [
      {
        process: 0,
        pid: 30,
        generation: 0,
        ageMs: 1000,
        rssBytes: 40 * mib,
        lastExit: undefined,
        loop: 0,
        state: 'ready',
        utilization: 0.9,
        openConnections: 3,
        connections: 9,
        requestsInFlight: 2,
        requests,
        bytesWritten: 0,
        acceptsItself: false,
        lagMs: 1,
        blockedMs: 0,
        turnedAway: 4,
        takenAway: 0,
        takenOver: 0,
      },
    ],
    ...changes,
  };
}

test('a server has its requests per second, and the busiest loop is that of the program', () => {
  const before = poll(0, [program({ servers: [server(1000)] })]);
  const [view] = viewOf(
    poll(500, [program({ servers: [server(1600, { answeredMs: 500 })] })]),
    before,
  );
  const [found] = view?.servers ?? [];
  assert.equal(found?.requestsPerSecond, 1200);
  assert.deepEqual(found?.addresses, ['[::]:3000']);
  assert.equal(found?.turnedAway, 4);
  assert.equal(found?.openConnections, 3);
  assert.equal(view?.summary.utilization, 0.9);
  assert.equal(view?.summary.requestsPerSecond, 1200);
});

test('a process that takes the place of another begins with no rate', () => {
  const restarted = server(5);
  const [loop] = restarted.loops;
  assert.ok(loop !== undefined);
  const after = server(5, { answeredMs: 500, loops: [{ ...loop, pid: 31 }] });
  const before = poll(0, [program({ servers: [server(1000)] })]);
  const [view] = viewOf(poll(500, [program({ servers: [after] })]), before);
  assert.equal(view?.servers[0]?.loops[0]?.requestsPerSecond, undefined);
  assert.equal(view?.servers[0]?.requestsPerSecond, undefined);
});

test('another program with the same pid begins with no rate', () => {
  const before = poll(0, [program()]);
  const young = program({ threads: [thread({ uptimeMs: 100 })] });
  const [view] = viewOf(poll(1000, [young]), before);
  assert.equal(view?.threads[0]?.utilization, undefined);
});

test('loops with units on them are a server, but where they answer for themselves', () => {
  const { loops } = server(10);
  const source = {
    kind: 'loops' as const,
    id: 2,
    stats: { loops, deployments: [{ id: 'a', name: 'counter' }] },
  };
  const threads = [thread({ sources: [source] })];
  const [view] = viewOf(poll(0, [program({ threads })]), undefined);
  assert.deepEqual(view?.servers[0]?.units, ['counter']);
  assert.equal(view?.servers[0]?.loops.length, 1);
  const [served] = viewOf(poll(0, [program({ threads, servers: [server(10)] })]), undefined);
  assert.equal(served?.servers.length, 1);
  assert.equal(served?.servers[0]?.app, '/app/main.js');
});

test('a thread without reports has a row, and counts as silent', () => {
  const usage = new Map([[10, { cpuMs: 5, rssBytes: 9 * mib }]]);
  const silent = program({
    threads: [],
    silent: [{ pid: 10, thread: 0, mayBlock: false, last: undefined }],
  });
  const [view] = viewOf(poll(0, [silent], usage), undefined);
  const [row] = view?.threads ?? [];
  assert.equal(row?.isSilent, true);
  assert.equal(row?.rssBytes, 9 * mib);
  assert.equal(view?.summary.silentThreads, 1);
});

test('a served loop is called by its process and its number', () => {
  const source = {
    kind: 'servedLoop' as const,
    id: 1,
    stats: { server: 10, process: 1, loop: 2 },
  };
  const [view] = viewOf(
    poll(0, [program({ threads: [thread({ sources: [source] })] })]),
    undefined,
  );
  assert.equal(view?.threads[0]?.role, 'loop 1.2');
});

test('CPU and memory of a process stand in the row of the first of its threads', () => {
  const usage = new Map([[10, { cpuMs: 5, rssBytes: 9 * mib }]]);
  const threads = [2, 3].map((number) => thread({ thread: number, process: undefined }));
  const [view] = viewOf(poll(0, [program({ threads })], usage), undefined);
  assert.deepEqual(
    view?.threads.map(({ rssBytes }) => rssBytes),
    [9 * mib, undefined],
  );
});

test('a bus has its messages per second', () => {
  const at = (uptimeMs: number, sent: number): Program =>
    program({
      threads: [
        thread({
          uptimeMs,
          sources: [
            {
              kind: 'bus',
              id: 3,
              stats: { sent, received: 2 * sent, undelivered: 1, dropped: 2, failed: 3 },
            },
          ],
        }),
      ],
    });
  const [view] = viewOf(poll(1000, [at(6000, 30)]), poll(0, [at(5000, 10)]));
  assert.deepEqual(view?.buses, [
    {
      pid: 10,
      thread: 0,
      id: 3,
      sentPerSecond: 20,
      receivedPerSecond: 40,
      undelivered: 1,
      dropped: 2,
      failed: 3,
    },
  ]);
});

test('a rate uses the clock of the counting thread, whenever the polls were', () => {
  const of = (uptimeMs: number, completedTasks: number): ThreadStats =>
    thread({ uptimeMs, sources: [pool({ completedTasks })] });
  const before = poll(0, [
    program({ threads: [of(5000, 100)], servers: [server(0, { answeredMs: 100 })] }),
  ]);
  // The poll waited for another thread: it ended after 2 s, and this one answered after 1.
  const later = program({
    threads: [of(6000, 200)],
    servers: [server(500, { answeredMs: 1100 })],
    silent: [{ pid: 10, thread: 4, mayBlock: false, last: undefined }],
  });
  const [view] = viewOf(poll(2000, [later]), before);
  assert.equal(view?.pools[0]?.tasksPerSecond, 100);
  assert.equal(view.servers[0]?.requestsPerSecond, 500);
});

test('a program that does not answer keeps its pools, as they were, without rates', () => {
  const workers = [{ id: 1, kind: 'process', pid: 20, state: 'ready', tasksInFlight: 1 }];
  const of = (uptimeMs: number, completedTasks: number): ThreadStats =>
    thread({ uptimeMs, sources: [pool({ completedTasks, workers })] });
  const silent = program({
    threads: [],
    silent: [{ pid: 10, thread: 0, mayBlock: false, last: of(5000, 100) }],
  });
  assert.deepEqual([...pidsOf([silent], new Map())], [10, 20]);
  const [view] = viewOf(poll(2000, [silent]), poll(0, [program({ threads: [of(5000, 100)] })]));
  assert.equal(view?.pools[0]?.isSilent, true);
  assert.equal(view.pools[0].tasksPerSecond, undefined);
  assert.equal(view.pools[0].workers[0]?.pid, 20);
  assert.equal(view.threads[0]?.isSilent, true);
  assert.equal(view.summary.workers, 1);
  // The program answers again: its rate covers the whole time.
  const back = program({ threads: [of(15_000, 1100)] });
  const [again] = viewOf(poll(9000, [back]), poll(2000, [silent]));
  assert.equal(again?.pools[0]?.tasksPerSecond, 100);
  assert.equal(again.pools[0].isSilent, false);
});

test('two groups of loops with units are distinguished', () => {
  const group = (id: number, name: string) => ({
    kind: 'loops' as const,
    id,
    stats: {
      loops: server(0).loops.map((loop) => ({ ...loop, pid: 30 + id })),
      deployments: [{ id: 1, name }],
    },
  });
  const threads = [thread({ sources: [group(1, 'one'), group(2, 'other')] })];
  const keys = (): (string | undefined)[] => {
    const [view] = viewOf(poll(0, [program({ threads })]), undefined);
    return view?.servers.map(({ key }) => key) ?? [];
  };
  assert.equal(new Set(keys()).size, 2);
  assert.deepEqual(keys(), keys());
});

test('CPU and memory of a partition are those of all its processes, and those inside are listed', () => {
  const workers = [
    { id: 1, kind: 'sandbox', pid: 20, state: 'ready', tasksInFlight: 1, tasksDone: 5 },
    { id: 2, kind: 'process', pid: 30, state: 'ready', tasksInFlight: 1, tasksDone: 5 },
  ];
  const partition = { memoryMb: 256, cpuPercent: 50, maxProcesses: 1, fileMb: 1, outputMb: 1 };
  const one = program({ threads: [thread({ sources: [pool({ workers, partition })] })] });
  const trees = new Map([
    [
      20,
      ['manycore-enter', 'bwrap', 'bwrap', 'bwrap', 'child'].map((name, depth) => ({
        pid: 20 + depth,
        name,
        depth,
      })),
    ],
  ]);
  assert.deepEqual([...partitionPids([one])], [20]);
  assert.deepEqual([...pidsOf([one], trees)], [10, 20, 30, 21, 22, 23, 24]);
  const usage = (eachMs: number): Poll['usage'] =>
    new Map([20, 21, 22, 23, 24].map((pid) => [pid, { cpuMs: eachMs, rssBytes: mib }]));
  const [view] = viewOf(poll(1000, [one], usage(100), trees), poll(0, [one], usage(0), trees));
  const [first, second] = view?.pools[0]?.workers ?? [];
  assert.deepEqual([first?.kind, first?.cpuShare, first?.rssBytes], ['sandbox', 0.5, 5 * mib]);
  assert.deepEqual(first?.inside, [
    { pid: 23, name: 'bwrap', depth: 0, cpuShare: 0.1, rssBytes: mib }, // whatever name it has taken
    { pid: 24, name: 'child', depth: 1, cpuShare: 0.1, rssBytes: mib },
  ]);
  assert.equal(second?.inside, undefined);
  assert.deepEqual(view?.pools[0]?.partition, {
    memoryBytes: 256 * mib,
    cpuShare: 0.5,
    maxProcesses: 1,
  });
  assert.equal(view?.summary.rssBytes, 5 * mib);
});
