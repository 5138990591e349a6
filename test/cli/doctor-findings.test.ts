// Findings of `manycore doctor` from samples of a program and the status of a server, and their text. Not
// here: findings about a machine (doctor-machine.test.ts), sampling (doctor.slow.test.ts).
// Long (over 400 lines): each finding has its limits and its remedy.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BlockingPoolReading } from '../../src/blocking-pool/index.js';
import { programFindings } from '../../src/cli/commands/doctor/doctor-program.js';
import { type Finding, isWell, report } from '../../src/cli/commands/doctor/doctor-report.js';
import type { ProcessSamples, SeenThread } from '../../src/cli/commands/doctor/doctor-samples.js';
import { loopsByProcess, serverFindings } from '../../src/cli/commands/doctor/doctor-server.js';
import {
  type SeenTransactions,
  transactionsBetween,
} from '../../src/cli/commands/doctor/doctor-transactions.js';
import type { PolledThread } from '../../src/observe/index.js';
import type { LoopStatus, ServerStatus } from '../../src/serve/index.js';
import { threadWithMemory } from '../observe/memory-thread.js';
import { unwell } from './findings.js';

const MiB = 1024 ** 2;

const reading: BlockingPoolReading = {
  threads: 4,
  idleThreads: 4,
  waitingJobs: 0,
  waitingLookups: 0,
  method: 'memory',
  problem: '',
};
const well: ProcessSamples = {
  pid: 7,
  command: 'node app.js',
  isContained: false,
  pool: [reading],
  poolProblem: '',
  poolWaitMs: undefined,
  runnable: [0],
  machineRunnable: [1],
  machineCores: 16,
  mainShare: 0.1,
  allowedCores: 2,
  quota: undefined,
  ownBytes: 100 * MiB,
  isStopped: false,
  threads: [],
  transactions: undefined,
  heapLimit: { bytes: 4096 * MiB, from: "Node's default" },
  openDescriptors: 20,
  maxDescriptors: 1024,
};

const thread: SeenThread = {
  thread: 0,
  role: 'main',
  isSilent: false,
  lag: { p99Ms: 1, maxMs: 2 },
  heap: { usedBytes: 10 * MiB, limitBytes: 512 * MiB, youngBytes: 48 * MiB },
};

function of(change: Partial<ProcessSamples>, { cores = 2, loops = 0 } = {}): Finding[] {
  return programFindings({ ...well, ...change }, cores, loops);
}

function remedyOf(what: string, findings: readonly Finding[]): string {
  const found = findings.find((finding) => finding.what === what);
  assert.ok(found?.cost, 'the finding has its cost');
  return found.remedy ?? '';
}

test('everything is ok in a healthy program', () => assert.deepEqual(unwell(of({})), []));

const full = { ...reading, idleThreads: 0, waitingJobs: 5 };

test('jobs that wait while cores are free need more threads, as many as cores and twice the present number', () => {
  const findings = of({ pool: [full], runnable: [1] }, { cores: 2 });
  assert.deepEqual(unwell(findings), ['blocking pool: problem']);
  assert.match(
    remedyOf('blocking pool', findings),
    /UV_THREADPOOL_SIZE=8: 1 of its threads needs a core, 2 are/,
  );
  const large = of({ pool: [full], runnable: [4], allowedCores: 16 }, { cores: 16 });
  assert.match(remedyOf('blocking pool', large), /UV_THREADPOOL_SIZE=16:/);
});

test('jobs that wait while no core is free need no more threads', () => {
  const findings = of({ pool: [full], runnable: [4, 4, 5] });
  assert.match(
    remedyOf('blocking pool', findings),
    /^begin fewer jobs.*4 of its threads need a core, 2 are/,
  );
  assert.doesNotMatch(remedyOf('blocking pool', findings), /UV_THREADPOOL_SIZE/);
});

test('computing jobs on a busy machine need no more threads, waiting ones do', () => {
  const machine = { allowedCores: 16, machineRunnable: [2], machineCores: 2 };
  const computes = of({ pool: [full], runnable: [3], ...machine }, { cores: 16 });
  assert.match(remedyOf('blocking pool', computes), /^begin fewer.*2 threads need one of its 2$/);
  const waits = of({ pool: [full], runnable: [0], ...machine }, { cores: 2 });
  assert.match(remedyOf('blocking pool', waits), /SIZE=8: none of its threads needs a core/);
});

test('the cores of a program are those of its own affinity and quota', () => {
  const pinned = of({ pool: [full], runnable: [4], allowedCores: 2 }, { cores: 16 });
  assert.match(remedyOf('blocking pool', pinned), /^begin fewer.* 2 are granted/);
  const quota = { cores: 0.5, periods: 10, halts: 0 };
  const limited = of({ pool: [full], runnable: [4], allowedCores: 16, quota }, { cores: 16 });
  assert.match(remedyOf('blocking pool', limited), /^begin fewer.* 1 is granted/);
});

test('lookups that wait beside idle threads are distinguished from other jobs', () => {
  const lookups = { ...reading, idleThreads: 2, waitingJobs: 6, waitingLookups: 6 };
  assert.match(remedyOf('blocking pool', of({ pool: [lookups] })), /dns\.resolve/);
});

const fought = { commits: 1000, conflicts: 500, contended: [] };
const hits = { name: 'hits', kind: 'TVar', conflicts: 300 } as const;
const quiet: readonly SeenTransactions[] = [
  { commits: 0, conflicts: 0, contended: [] },
  { commits: 10, conflicts: 99, contended: [hits] },
  { commits: 1_000_000, conflicts: 200_000, contended: [hits] },
];

for (const transactions of quiet) {
  const { commits, conflicts } = transactions;
  test(`${conflicts} attempts in vain beside ${commits} commits are no problem`, () => {
    const findings = of({ transactions });
    assert.deepEqual(unwell(findings), []);
    assert.ok(findings.some(({ what }) => what === 'transactions'));
  });
}

test('a variable that is fought over is named, with what to do', () => {
  const findings = of({
    transactions: { ...fought, contended: [hits, { ...hits, name: 'other', conflicts: 3 }] },
  });
  assert.deepEqual(unwell(findings), ['transactions: problem']);
  const found = findings.find(({ what }) => what === 'transactions');
  assert.equal(
    found?.detail,
    '1000 commits and 500 attempts in vain in a second, most of them over the TVar "hits"',
  );
  assert.match(remedyOf('transactions', findings), /^divide it.*tcounter/);
});

test('a fight that is over is not named, one that goes on is', () => {
  const polled = (
    commits: number,
    conflicts: number,
    contended: readonly object[],
  ): PolledThread[] => {
    const stats = { space: 1, commits, conflicts, contended };
    return [{ thread: 0, mayBlock: false, stats: threadWithMemory(0, 0, stats) }];
  };
  const over = { name: 'over', kind: 'TVar', conflicts: 900 };
  const before = polled(0, 1000, [over, hits]);
  const after = polled(10, 1400, [over, { ...hits, conflicts: 400 }, { ...hits, name: 'new' }]);
  const seen = transactionsBetween(before, after);
  assert.deepEqual(
    seen?.contended.map(({ name, conflicts }) => [name, conflicts]),
    [
      ['new', 300],
      ['hits', 100],
    ],
  );
  assert.equal(seen?.conflicts, 400);
});

const kinds = ['TVar', 'TMap', 'TSortedMap', 'TList', 'TQueue', 'TCounter'] as const;

test('each kind has a remedy, and what has no name has a way to find it', () => {
  const remedies = kinds.map((kind) => {
    const contended = [{ name: 'it', kind, conflicts: 1 }];
    return remedyOf('transactions', of({ transactions: { ...fought, contended } }));
  });
  assert.equal(new Set(remedies).size, kinds.length);
  for (const kind of [...kinds, undefined]) {
    const contended = [{ name: undefined, kind, conflicts: 1 }];
    const findings = of({ transactions: { ...fought, contended } });
    assert.match(remedyOf('transactions', findings), /^give it a name by named\(\)/);
  }
  assert.ok(remedyOf('transactions', of({ transactions: fought })));
});

test('waiting jobs in one of ten samples are no problem', () => {
  const pool = [full, ...Array.from({ length: 9 }, () => reading)];
  assert.deepEqual(unwell(of({ pool })), []);
});

test('threads that are never idle are advice if jobs cannot be counted', () => {
  const seen = {
    ...reading,
    waitingJobs: undefined,
    waitingLookups: undefined,
    method: 'threads' as const,
  };
  const problem = 'its executable was stripped of symbols';
  const busy = of({ pool: [{ ...seen, idleThreads: 0, problem }] });
  assert.deepEqual(unwell(busy), ['blocking pool: advice']);
  assert.match(busy[0]?.detail ?? '', /stripped of symbols/);
  assert.deepEqual(unwell(of({ pool: [{ ...seen, problem }] })), []);
});

test('a long wait of our probe is a problem if jobs cannot be counted', () => {
  const problem = 'its executable was stripped of symbols';
  const uncounted = { waitingJobs: undefined, waitingLookups: undefined, idleThreads: 0, problem };
  const pool = [{ ...reading, ...uncounted, method: 'threads' as const }];
  const long = of({ pool, poolWaitMs: 1049.2 });
  assert.deepEqual(unwell(long), ['blocking pool: problem']);
  assert.match(long[0]?.detail ?? '', /^a job of ours waited 1050 ms .*stripped of symbols$/);
  assert.match(remedyOf('blocking pool', long), /UV_THREADPOOL_SIZE=8:/);
  const hidden = of({ pool: [], poolProblem: 'it cannot be seen', poolWaitMs: 1049.2 });
  assert.deepEqual(unwell(hidden), ['blocking pool: problem']);
  assert.match(remedyOf('blocking pool', hidden), /a larger UV_THREADPOOL_SIZE than it has:/);
  assert.deepEqual(unwell(of({ pool, poolWaitMs: 0.2 })), []);
});

test('a probe that ended late because of a late loop is no wait for the pool', () => {
  const threads = [{ ...thread, lag: { p99Ms: 250, maxMs: 300 } }];
  const findings = of({ pool: [], poolProblem: 'hidden', poolWaitMs: 310, threads });
  assert.deepEqual(unwell(findings), ['loop lag: problem']);
});

test('an unreadable or unused pool is reported and is no problem', () => {
  const hidden = of({ pool: [], poolProblem: 'it cannot be seen' });
  assert.deepEqual([hidden[0]?.state, hidden[0]?.detail], ['info', 'it cannot be seen']);
  assert.match(of({ pool: [{ ...reading, threads: 0 }] })[0]?.detail ?? '', /nothing has used it/);
});

test('a main thread that is always at work is reported, unless loops are in other threads', () => {
  assert.match(remedyOf('main thread', of({ mainShare: 0.98 })), /manycore serve/);
  assert.match(remedyOf('main thread', of({ mainShare: 0.98 }, { loops: 1 })), /manycore scale/);
  assert.deepEqual(unwell(of({ mainShare: 0.98 }, { loops: 2 })), []);
});

test('a quota that is used up again and again is a problem', () => {
  const quota = { cores: 0.5, periods: 10, halts: 6 };
  const findings = of({ quota });
  assert.deepEqual(unwell(findings), ['CPU quota: problem']);
  assert.match(remedyOf('CPU quota', findings), /1 worker$/);
  assert.deepEqual(unwell(of({ quota: { ...quota, halts: 1 } })), []);
  assert.deepEqual(unwell(of({ quota: { ...quota, periods: 0, halts: 0 } })), []);
});

test('memory near the limit of an unreported heap gives a guess, far below it is well', () => {
  const heapLimit = { bytes: 512 * MiB, from: 'NODE_OPTIONS' };
  const near = of({ ownBytes: 400 * MiB, heapLimit });
  assert.deepEqual(unwell(near), ['heap limit: advice']);
  assert.match(remedyOf('heap limit', near), /--max-old-space-size=1024$/);
  assert.match(near.find(({ what }) => what === 'heap limit')?.cost ?? '', /guess/);
  assert.deepEqual(unwell(of({ ownBytes: 200 * MiB, heapLimit })), []);
  assert.deepEqual(unwell(of({ ownBytes: 400 * MiB, heapLimit }, { loops: 2 })), []);
  const names = of({ heapLimit: undefined }).map(({ what }) => what);
  assert.ok(!names.includes('heap limit'), 'an unknown limit has no finding');
});

test('with reported heaps the memory of the process is no finding', () => {
  const heap = { usedBytes: 20 * MiB, limitBytes: 248 * MiB, youngBytes: 48 * MiB };
  const threads = [thread, { ...thread, thread: 2, role: 'thread 2', heap }];
  const findings = of({ ownBytes: 4000 * MiB, threads }).filter(
    ({ what }) => what === 'heap limit',
  );
  assert.deepEqual(
    findings.map(({ state, detail }) => [state, detail]),
    [
      ['ok', 'main: 10 MiB of 512 MiB used'],
      ['ok', 'thread 2: 20 MiB of 248 MiB used'],
    ],
  );
});

for (const [number, role, remedy] of [
  [0, 'main', /^start it with --max-old-space-size=512$/],
  [2, 'thread 2', /^resourceLimits: { maxOldGenerationSizeMb: 512 } for its Worker/],
  [1, 'loop 0.1', /^"nodeFlags": \["--max-old-space-size=512"\] in manycore\.config\.json$/],
] as const) {
  test(`a heap near its limit has its own way out in ${role}`, () => {
    const heap = { usedBytes: 200 * MiB, limitBytes: 248 * MiB, youngBytes: 48 * MiB };
    const findings = of({ threads: [{ ...thread, thread: number, role, heap }] });
    assert.deepEqual(unwell(findings), ['heap limit: advice']);
    assert.match(remedyOf('heap limit', findings), remedy);
  });
}

test('the limit for a heap is without its part for young objects', () => {
  const heap = { usedBytes: 154 * MiB, limitBytes: 392 * MiB };
  const of200 = of({ threads: [{ ...thread, heap: { ...heap, youngBytes: 192 * MiB } }] });
  assert.deepEqual(unwell(of200), ['heap limit: advice']);
  const of344 = of({ threads: [{ ...thread, heap: { ...heap, youngBytes: 48 * MiB } }] });
  assert.deepEqual(unwell(of344), []);
});

test('a silent thread is a problem: move its computation, or find its wait', () => {
  const silent = { ...thread, isSilent: true, lag: undefined, heap: undefined };
  const waits = of({ threads: [silent], mainShare: 0 });
  assert.deepEqual(unwell(waits), ['blocked loop: problem']);
  assert.match(remedyOf('blocked loop', waits), /^find the call/);
  const computes = of({ threads: [silent], mainShare: 1 });
  assert.deepEqual(unwell(computes), ['blocked loop: problem']);
  assert.match(remedyOf('blocked loop', computes), /^move what computes/);
  const stopped = of({ threads: [silent], mainShare: 0, isStopped: true });
  assert.match(remedyOf('blocked loop', stopped), /^kill -CONT 7:/);
  const other = of({ threads: [thread, { ...silent, thread: 2, role: 'thread 2' }] });
  assert.deepEqual(unwell(other), ['blocked loop: problem']);
  assert.match(other.find(({ cost }) => cost)?.detail ?? '', /^thread 2: no answer within 1 s$/);
});

test('a loop that is late is a problem, one callback in a second that was is none', () => {
  const late = of({ threads: [{ ...thread, lag: { p99Ms: 250.4, maxMs: 300 } }] });
  assert.deepEqual(unwell(late), ['loop lag: problem']);
  assert.match(late.find(({ cost }) => cost)?.detail ?? '', /^main: 250 ms .*at most 300 ms/);
  assert.deepEqual(unwell(of({ threads: [{ ...thread, lag: { p99Ms: 20, maxMs: 300 } }] })), []);
});

test('descriptors that are nearly used up are a problem', () => {
  assert.deepEqual(unwell(of({ openDescriptors: 900 })), ['descriptors: problem']);
  assert.deepEqual(unwell(of({ openDescriptors: 900, maxDescriptors: Infinity })), []);
});

test('a program in a container is marked', () => {
  assert.equal(of({ isContained: true }).at(-1)?.what, 'container');
});

const line: LoopStatus = {
  process: 0,
  pid: 7,
  generation: 0,
  ageMs: 1000,
  rssBytes: 0,
  lastExit: undefined,
  loop: 0,
  state: 'ready',
  utilization: 0,
  openConnections: 3,
  connections: 5,
  requestsInFlight: 0,
  requests: 5,
  bytesWritten: 0,
  acceptsItself: false,
  lagMs: 1,
  blockedMs: 0,
  turnedAway: 0,
  takenAway: 0,
  takenOver: 0,
};

function status(...changes: Partial<LoopStatus>[]): ServerStatus {
  return {
    pid: 1,
    name: 'app',
    app: 'app.js',
    startedAtMs: 0,
    lostProcesses: 0,
    addresses: [],
    loops: changes.map((change) => ({ ...line, ...change })),
  };
}

for (const [what, changes, expected] of [
  ['a server that does well', [{}, { pid: 8, process: 1 }], []],
  ['more loops than cores', [{}, {}, {}], ['loops: advice']],
  ['rows that nobody has', [{}, {}, { state: 'free' as const }], []],
  ['a blocked loop', [{ blockedMs: 3000 }], ['blocked loop: problem']],
  ['a loop in a long callback', [{ blockedMs: 300 }], []],
  ['a loop that is late', [{ lagMs: 400 }], ['loop lag: problem']],
  ['clients that got 503', [{ turnedAway: 2 }], ['turned away: problem']],
  [
    'a process that replaced another',
    [{ lastExit: 'SIGKILL' }, { loop: 1, lastExit: 'SIGKILL' }],
    ['restarts: advice'],
  ],
] as const) {
  test(`of a server: ${what}`, () => {
    const server = status(...changes);
    const findings = serverFindings(server, 2, [server]);
    assert.deepEqual(unwell(findings), expected);
    for (const { state, cost, remedy } of findings) assert.equal(state === 'ok', !(cost && remedy));
  });
}

test('servers that each have enough cores may have too few together', () => {
  const one = status({}, {});
  const other = { ...status({}), pid: 9 };
  assert.deepEqual(unwell(serverFindings(one, 2, [one])), []);
  const findings = serverFindings(one, 2, [one, other]);
  assert.deepEqual(unwell(findings), ['loops: advice']);
  assert.match(
    findings[0]?.detail ?? '',
    /^2 on 2 granted cores, 3 with those of your other servers$/,
  );
  assert.match(remedyOf('loops', findings), /a share of the 2 cores/);
});

test('more threads that need a core than there are is advice, for a program and for a machine', () => {
  const machine = { allowedCores: 16, machineCores: 16, machineRunnable: [5] };
  const own = of({ runnable: [5, 5, 1], ...machine }, { cores: 4 });
  assert.deepEqual(unwell(own), ['threads: advice']);
  assert.match(remedyOf('threads', own), /4 threads that compute/);
  assert.deepEqual(unwell(of({ runnable: [4], ...machine }, { cores: 4 })), []);
  const crowded = { ...machine, machineRunnable: [17] };
  const others = of({ runnable: [2], ...crowded }, { cores: 4 });
  assert.deepEqual(unwell(others), ['threads: advice']);
  assert.match(remedyOf('threads', others), /run less beside it/);
  assert.deepEqual(unwell(of({ runnable: [0], ...crowded }, { cores: 4 })), []);
});

test('the loops of a server are counted by process', () => {
  const counts = loopsByProcess(
    status({}, { loop: 1 }, { pid: 8 }, { pid: undefined, state: 'free' }),
  );
  assert.deepEqual(
    [...counts],
    [
      [7, 2],
      [8, 1],
    ],
  );
});

const lines: readonly Finding[] = [
  { what: 'a', state: 'ok', detail: 'works' },
  {
    what: 'a longer name',
    state: 'problem',
    detail: 'much is to be said of this, '.repeat(4).trim(),
    cost: 'so much '.repeat(20).trim(),
    remedy: 'and this mends it '.repeat(8).trim(),
  },
];

test('a report fits into 80 columns, with marks that stand below each other', () => {
  const text = report([{ title: 'This machine', findings: lines }]);
  for (const each of text.split('\n')) assert.ok(each.length <= 80, each);
  const [title, first, second = ''] = text.split('\n');
  assert.equal(title, 'This machine');
  assert.equal(first, 'ok      a              works');
  assert.match(second, /^PROBLEM a longer name {2}much is/);
});

for (const [state, isGood, verdict] of [
  ['ok', true, 'Everything works here.'],
  ['info', true, 'Everything works here.'],
  ['advice', true, 'Everything works here; see ADVICE above.'],
  ['missing', false, 'It works here, with what is MISSING above.'],
  ['problem', false, 'Something costs time now: see PROBLEM above.'],
] as const) {
  test(`a finding of state ${state} makes the verdict`, () => {
    const chapters = [
      { title: '', findings: [...lines.slice(0, 1), { what: 'b', state, detail: '' }] },
    ];
    assert.equal(isWell(chapters), isGood);
    assert.ok(report(chapters).endsWith(`\n\n${verdict}`));
  });
}
