// Hostile code in sandboxes: each attempt is refused, by the layer that its table names, the program goes on, and
// nothing of the sandbox is left.
// Long (over 400 lines), because each attempt is a line or two of a table.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import fs from 'node:fs';
import { connect, createServer } from 'node:net';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import type { SandboxOptions } from '../../src/public.js';
import { isRunning, waitFor } from '../support/index.js';
import { assertWell, silence } from './hostile.js';
import { codeOf, forger, outcome, sandboxPool, skip } from './support.js';

type Limits = Omit<SandboxOptions, 'kind'>;

interface Attempt {
  /** The layer that refuses, and what is refused. */
  readonly name: string;
  readonly run: () => unknown;
  /** The result of `run`: the code of an error, or `done`. */
  readonly seen: unknown;
  readonly limits?: Limits;
}

const calls: readonly Attempt[] = [
  // Files that are not there: the mount namespace.
  {
    name: 'mounts: /etc/passwd',
    run: () => outcome(() => fs.readFileSync('/etc/passwd')),
    seen: 'ENOENT',
  },
  {
    name: 'mounts: the home of root',
    run: () => outcome(() => fs.readdirSync('/root')),
    seen: 'ENOENT',
  },
  {
    name: 'mounts: control groups',
    run: () => outcome(() => fs.readdirSync('/sys/fs/cgroup')),
    seen: 'ENOENT',
  },
  {
    name: 'mounts: the folder of the program',
    run: () => outcome(() => fs.readFileSync(`${process.argv[1]}/../../package-lock.json`)),
    seen: 'ENOTDIR',
  },
  {
    name: 'mounts: `..` leads nowhere',
    run: () => outcome(() => fs.readFileSync('/tmp/../../../../etc/passwd')),
    seen: 'ENOENT',
  },
  {
    name: 'mounts: a file in /dev',
    run: () => outcome(() => fs.writeFileSync('/dev/shm/x', 'x')),
    seen: 'EROFS',
  },
  // Rights: Landlock.
  {
    name: 'Landlock: the root folder',
    run: () => outcome(() => fs.readdirSync('/')),
    seen: 'EACCES',
  },
  {
    name: 'mounts: a file in /',
    run: () => outcome(() => fs.writeFileSync('/x', 'x')),
    seen: 'EROFS',
  },
  {
    name: 'mounts: node itself, which runs',
    run: () => outcome(() => fs.openSync(process.execPath, 'r+')),
    seen: 'ETXTBSY',
  },
  {
    name: 'mounts: the program of the worker',
    run: () => outcome(() => fs.appendFileSync(String(process.argv[1]), 'x')),
    seen: 'EROFS',
  },
  {
    name: 'Landlock: its own memory',
    run: () => outcome(() => fs.openSync('/proc/self/mem', 'r+')),
    seen: 'EACCES',
  },
  {
    name: 'Landlock: its own score',
    run: () => outcome(() => fs.writeFileSync('/proc/self/oom_score_adj', '-1000')),
    seen: 'EACCES',
  },
  {
    name: 'Landlock: the settings of the kernel',
    run: () => outcome(() => fs.writeFileSync('/proc/sys/kernel/hostname', 'x')),
    seen: 'EACCES',
  },
  {
    name: 'Landlock: the environment of process 1',
    run: () => outcome(() => fs.readFileSync('/proc/1/environ')),
    seen: 'EACCES',
  },
  // Other processes: the pid namespace.
  {
    name: 'processes: only its own are there',
    run: () => fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name)).length,
    seen: 2,
  },
  {
    name: 'processes: a signal to none',
    run: () => outcome(() => process.kill(4_000_000, 0)),
    seen: 'ESRCH',
  },
  {
    name: 'processes: a signal to process 1',
    run: () => outcome(() => killFirst()),
    seen: 'done',
  },
  {
    name: 'processes: a signal to all',
    run: () => outcome(() => killAll()),
    seen: 'ESRCH',
  },
  // System calls: seccomp.
  {
    name: 'seccomp: a process',
    run: () => codeOf(spawnSync(process.execPath, ['-v']).error),
    seen: 'EPERM',
  },
  {
    name: 'seccomp: a shell',
    run: () => codeOf(spawnSync('/bin/sh', ['-c', 'id']).error),
    seen: 'EPERM',
  },
  { name: 'seccomp: TCP', run: () => failureOf(() => connect(80, '127.0.0.1')), seen: 'EPERM' },
  {
    name: 'seccomp: a TCP server',
    run: () => failureOf(() => createServer().listen(0)),
    seen: 'EPERM',
  },
  {
    name: 'seccomp: a unix socket',
    run: () => failureOf(() => connect('/run/docker.sock')),
    seen: 'EPERM',
  },
  {
    name: 'seccomp: an abstract unix socket',
    run: () => failureOf(() => connect('\0manycore')),
    seen: 'EPERM',
  },
  { name: 'seccomp: UDP', run: () => failureOf(() => createSocket('udp4').bind(0)), seen: 'EPERM' },
  {
    name: 'seccomp: a link',
    run: () => outcome(() => fs.symlinkSync('/etc', '/tmp/etc')),
    seen: 'EPERM',
  },
  {
    name: 'seccomp: a hard link',
    run: () => outcome(() => fs.linkSync(process.execPath, '/tmp/node')),
    seen: 'EPERM',
  },
  {
    name: 'seccomp: another mode',
    run: () => outcome(() => fs.writeFileSync('/tmp/x', 'x') ?? fs.chmodSync('/tmp/x', 0o4777)),
    seen: 'EPERM',
  },
  {
    name: 'seccomp: other watches',
    run: () => outcome(() => fs.watch('/tmp').close()),
    seen: 'EPERM',
  },
  { name: 'seccomp: another user', run: () => outcome(() => process.setuid?.(0)), seen: 'EPERM' },
  {
    name: 'seccomp: another priority',
    run: () => outcome(() => process.getBuiltinModule('node:os').setPriority(-5)),
    seen: 'ERR_SYSTEM_ERROR',
  },
  // Resources that it has.
  {
    name: 'environment: three variables',
    run: () =>
      Object.keys(process.env)
        .filter((name) => name !== 'PWD')
        .sort(),
    seen: ['HOME', 'PATH', 'TZ'],
  },
  {
    name: 'descriptors: its own',
    run: ownDescriptors,
    seen: ['/dev/null', 'anon_inode', 'pipe', 'socket'],
  },
  { name: 'descriptors: four sockets at most', run: () => openSockets() <= 4, seen: true },
  {
    name: 'native code: a file of no module',
    run: () =>
      outcome(
        () =>
          fs.writeFileSync('/tmp/x.node', 'x') ?? process.dlopen({ exports: {} }, '/tmp/x.node'),
      ),
    seen: 'ERR_DLOPEN_FAILED',
  },
  {
    name: 'limits: a file above fileMb',
    run: () => outcome(() => fs.writeFileSync('/tmp/x', Buffer.alloc(2 ** 21))),
    seen: 'EFBIG',
    limits: { fileMb: 1 },
  },
  {
    name: 'limits: /tmp above fileMb',
    run: () =>
      outcome(() => [1, 2, 3].map((at) => fs.writeFileSync(`/tmp/${at}`, Buffer.alloc(2 ** 19)))),
    seen: 'ENOSPC',
    limits: { fileMb: 1 },
  },
  {
    name: 'limits: higher ones',
    run: () =>
      /^Max file size +67108864 +67108864 /m.test(fs.readFileSync('/proc/self/limits', 'utf8')),
    seen: true,
  },
  {
    name: 'options: env is all of it',
    run: () => process.env['GIVEN'],
    seen: 'x',
    limits: { env: { GIVEN: 'x' } },
  },
  {
    name: 'options: maxProcesses',
    run: () => spawnSync(process.execPath, ['-p', '7']).stdout.toString().trim(),
    seen: '7',
    limits: { maxProcesses: 1 },
  },
  {
    name: "options: network 'host' has no unix sockets",
    run: () => failureOf(() => connect('\0manycore')),
    seen: 'EPERM',
    limits: { network: 'host' },
  },
  {
    name: 'worker threads work',
    run: () =>
      answerOf(new Worker('require("worker_threads").parentPort.postMessage(5)', { eval: true })),
    seen: 5,
  },
];

function failureOf(
  begin: () => { once(event: 'error', listener: (error: Error) => void): unknown },
): Promise<unknown> {
  return new Promise((resolve) => {
    begin().once('error', (error) => resolve('code' in error ? error.code : String(error)));
  });
}

function answerOf(worker: Worker): Promise<unknown> {
  return new Promise(
    (resolve, reject) => void worker.once('message', resolve).once('error', reject),
  );
}

function targets(): string[] {
  return fs.readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return [fs.readlinkSync(`/proc/self/fd/${fd}`)];
    } catch {
      return []; // that of the list
    }
  });
}

function ownDescriptors(): string[] {
  const kinds = targets().map((target) => target.replace(/:.*/, ''));
  return [...new Set(kinds)].filter((kind) => !kind.startsWith('/proc')).sort();
}

function openSockets(): number {
  return targets().filter((target) => target.startsWith('socket:')).length;
}

for (const { name, run, seen, limits } of calls) {
  test(name, { skip }, async (t) => {
    const pool = sandboxPool(t, limits);
    assert.deepEqual(await pool.run(run), seen);
    await assertWell(pool);
  });
}

test('a loopback of its own: nothing of this program can be reached', { skip }, async (t) => {
  const server = createServer((socket) => socket.end()).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await waitFor(() => server.listening);
  const address = server.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  const attempt = (to: number): Promise<unknown> =>
    new Promise((resolve) => {
      const socket = connect(to, '127.0.0.1', () => resolve('connected'));
      socket.once('error', (error) => resolve('code' in error ? error.code : String(error)));
    });
  // Without seccomp the namespace alone refuses.
  for (const [limits, seen] of [
    [{}, 'EPERM'],
    [{ allow: ['no-seccomp'] }, 'ECONNREFUSED'],
    [{ network: 'host' }, 'connected'],
  ] satisfies [Limits, string][]) {
    const pool = sandboxPool(t, limits);
    assert.equal(await pool.run(attempt, port), seen);
    await assertWell(pool);
  }
});

/** Ends of sandboxes by what they do. `seen` is in the error, `run` never answers. */
const ends: readonly {
  name: string;
  run: () => unknown;
  seen: RegExp;
  limits?: Limits;
  timeoutMs?: number;
}[] = [
  {
    name: 'memory',
    run: () => {
      const all: Buffer[] = [];
      for (;;) all.push(Buffer.alloc(2 ** 20, 1));
    },
    seen: /memory limit of 128 MiB/,
    limits: { memoryMb: 128 },
  },
  {
    name: 'files in /tmp count as memory',
    run: () => {
      for (let at = 0; ; at += 1) fs.writeFileSync(`/tmp/${at}`, Buffer.alloc(2 ** 22));
    },
    seen: /memory limit of 128 MiB/,
    limits: { memoryMb: 128, fileMb: 1000 },
  },
  {
    name: 'output',
    run: () => {
      for (;;) {
        try {
          fs.writeSync(2, Buffer.alloc(2 ** 16, 97));
        } catch {} // the pipe is full
      }
    },
    seen: /more than 1 MiB of output/,
    limits: { outputMb: 1 },
  },
  {
    name: 'a result above resultMb',
    run: () => Buffer.alloc(3 * 2 ** 20),
    seen: /is too large/,
    limits: { resultMb: 2 },
  },
  {
    name: 'a definition',
    run: () => {
      forger().send(1, 0, 5, Buffer.from('x'));
      return silence();
    },
    seen: /kind 1, which no partition/,
  },
  {
    name: 'a chunk of a map',
    run: () => {
      forger().send(15, 0, 5);
      return silence();
    },
    seen: /kind 15, which no partition/,
  },
  {
    name: 'a block of memory',
    run: () => {
      forger().send(2, 0, 0, Buffer.alloc(40));
      return silence();
    },
    seen: /kind 2, which no partition/,
  },
  {
    name: 'a kind of frame that does not exist',
    run: () => {
      forger().send(-1, 0, 0);
      return silence();
    },
    seen: /kind -1, which no partition/,
  },
  {
    name: 'a result that is cut off',
    run: () => {
      forger().send(21, 0, 0, Buffer.from([9, 255, 0, 0, 0]));
      return silence();
    },
    seen: /does not fit a frame/,
  },
  {
    name: 'a ready message of garbage',
    run: () => {
      forger().send(20, 0, 0, Buffer.from([255]));
      return silence();
    },
    seen: /no value begins with tag 255/,
  },
  {
    name: 'memory statistics of garbage',
    run: () => {
      forger().send(28, 0, 0, Buffer.from([4, 1, 0, 0, 0]));
      return silence();
    },
    seen: /no memory/,
  },
  {
    name: 'an item of no stream',
    run: () => {
      forger().send(24, 0, 0, Buffer.from([1]));
      return silence();
    },
    seen: /an item too much/,
  },
  {
    name: 'a forged function',
    run: () => {
      forger().send(21, 0, 0, slow(graphOf([[0, 'eval']])));
      return silence();
    },
    seen: /has code in it/,
  },
  {
    name: 'a forged class',
    run: () => {
      forger().send(21, 0, 0, slow(graphOf([[6, 1, [1, 2], [], 0, 0]])));
      return silence();
    },
    seen: /has code in it/,
  },
  {
    name: 'a forged error of another class',
    run: () => {
      forger().send(21, 0, 0, slow(graphOf([[9, 'Function']])));
      return silence();
    },
    seen: /has code in it/,
  },
  {
    name: 'ten thousands of buffers that can grow',
    run: () => {
      forger().send(21, 0, 0, slow(many([0x7e, 1, 0x80, 0x80, 0x40, 7], 40_000)));
      return silence();
    },
    seen: /cannot be read/,
  },
  {
    name: 'a million maps in few bytes',
    run: () => {
      forger().send(21, 0, 0, slow(many([0x3b, 0x3a, 0], 2_000_000)));
      return silence();
    },
    seen: /too many parts for its size/,
  },
  {
    name: 'a million buffers in few bytes',
    run: () => {
      const body = Buffer.alloc(5 + 6_000_000);
      body[0] = 11;
      body.writeUInt32LE(1_000_000, 1);
      for (let at = 5; at < body.length; at += 6) body[at] = 14;
      forger().send(21, 0, 0, body);
      return silence();
    },
    seen: /too many parts for its size/,
  },
  {
    name: 'the end of its channel, while it stays',
    run: () => {
      stay();
      for (const bell of forger().bells) fs.closeSync(bell);
      return silence();
    },
    seen: /WORKER_EXITED/,
  },
  {
    name: 'a goodbye, while it stays',
    run: () => {
      stay();
      forger().close();
      return silence();
    },
    seen: /WORKER_EXITED/,
  },
  {
    name: 'an uncaught error whose message is no text',
    run: () => {
      setImmediate(() => {
        throw Object.assign(new Error('x'), { message: Object.create(null) });
      });
      return silence();
    },
    seen: /has no text/,
  },
  {
    name: 'a flood of reports, whose answers it does not read',
    run: () => {
      const { send } = forger();
      for (;;) send(30, 0, 1, Buffer.from([0]));
    },
    seen: /reads no answer/,
  },
  {
    name: 'an endless loop',
    run: () => {
      for (;;);
    },
    seen: /TASK_TIMED_OUT/,
    timeoutMs: 200,
  },
  {
    name: 'an endless loop that ignores signals',
    run: () => {
      process.on('SIGTERM', () => {});
      process.on('SIGINT', () => {});
      for (;;);
    },
    seen: /TASK_TIMED_OUT/,
    timeoutMs: 200,
  },
];

/** Never outside: there they would end more than a sandbox. */
function killFirst(): void {
  if (process.getuid?.() !== 65_534) throw new Error('it is in no sandbox');
  process.kill(1, 'SIGKILL');
}

function killAll(): void {
  if (process.getuid?.() !== 65_534) throw new Error('it is in no sandbox');
  process.kill(-1, 'SIGKILL');
}

/** Keeps this process, whatever manycore does. */
function stay(): void {
  setInterval(() => {}, 1000);
  Reflect.set(process, 'reallyExit', () => {});
  Reflect.set(process, 'exit', () => {});
}

/** A value of the slow codec. */
function slow(bytes: Buffer): Buffer {
  const head = Buffer.from([16, 0, 0, 0, 0]);
  head.writeUInt32LE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

/** A payload with these specials, of which the first is the value. */
function graphOf(specials: readonly unknown[]): Buffer {
  const root = [undefined];
  const { Serializer } = process.getBuiltinModule('node:v8');
  const writer = new Serializer();
  writer.writeHeader();
  writer.writeUint32(1);
  writer.writeValue([root, specials, [root, 0, 0], [], [], [], [], []]);
  return writer.releaseBuffer();
}

/** An array that has one value, as V8 writes it, many times. */
function many(value: readonly number[], count: number): Buffer {
  const length = [
    (count & 0x7f) | 0x80,
    ((count >> 7) & 0x7f) | 0x80,
    ((count >> 14) & 0x7f) | 0x80,
    count >> 21,
  ];
  const values = Buffer.alloc(value.length * count, Buffer.from(value));
  return Buffer.concat([
    Buffer.from([0xff, 0x0f, 0, 0x41, ...length]),
    values,
    Buffer.from([0x24, 0, ...length]),
  ]);
}

for (const { name, run, seen, limits, timeoutMs } of ends) {
  test(`a sandbox ends for ${name}`, { skip }, async (t) => {
    const pool = sandboxPool(t, { outputMb: 1, ...limits }, { onOutput: () => {}, graceMs: 50 });
    const runs = timeoutMs === undefined ? pool : pool.with({ timeoutMs });
    await assert.rejects(runs.run(run), (error) => {
      const text = `${codeOf(error)} ${error}`;
      assert.match(text, seen);
      return true;
    });
    await assertWell(pool);
  });
}

/** Frames that answer nothing, with bodies that can be read. */
const unasked: Readonly<
  Record<string, { readonly kind: number; readonly slot?: number; readonly body?: () => Buffer }>
> = {
  memory: { kind: 28, body: forgedMemory },
  retire: { kind: 26 },
  ready: { kind: 20, body: () => Buffer.from([11, 2, 0, 0, 0, 4, 1, 0, 0, 0, 8, 1, 97]) },
  'failed items': { kind: 27 },
  'failed starts': { kind: 25 },
  'uncaught errors': { kind: 29 },
  'results of no call': { kind: 21, slot: 99 },
  'items of no call': { kind: 24, slot: 99 },
  'reports of no call': { kind: 30, slot: 99, body: () => Buffer.from([0]) },
};
for (const [name, { kind, slot = 0, body }] of Object.entries(unasked)) {
  test(`a sandbox ends for a flood of frames: ${name}`, { skip }, async (t) => {
    const pool = sandboxPool(t);
    const flood = pool.run(
      (forged, at, content) => {
        const { send } = forger();
        for (let sent = 0; sent < 1500; sent += 1) send(forged, at, 0, Buffer.from(content));
        return silence();
      },
      kind,
      slot,
      new Uint8Array(body?.() ?? []),
    );
    await assert.rejects(flood, (error) => {
      assert.match(`${codeOf(error)} ${error}`, /WORKER_EXITED .*sent 100\d frames that nobody/);
      const { cause }: { cause?: unknown } = Object(error);
      // An error that nothing caught is the cause of an end that was no success, forged or not.
      if (kind !== 29) assert.equal(codeOf(cause), 'WORKER_PROTOCOL');
      return true;
    });
    assert.equal(pool.stats().overLimit?.protocol, 1);
    await assertWell(pool);
  });
}

function forgedMemory(): Buffer {
  const pauses = { count: 0, totalMs: 0, maxMs: 0 };
  const { Serializer } = process.getBuiltinModule('node:v8');
  const writer = new Serializer();
  writer.writeHeader();
  writer.writeUint32(0);
  writer.writeValue({
    atMs: 1,
    heap: { usedBytes: 1, totalBytes: 1, limitBytes: 1, externalBytes: 1 },
    gc: { minor: pauses, major: pauses, incremental: pauses, weakCallbacks: pauses },
  });
  return slow(writer.releaseBuffer());
}

test('a frame too much at each of many calls is no flood', { skip }, async (t) => {
  const pool = sandboxPool(t);
  const one = (): number => {
    forger().send(21, 99, 0);
    return process.pid;
  };
  for (let at = 0; at < 1500; at += 1) await pool.run(one);
  assert.deepEqual([pool.stats().exitedWorkers, pool.stats().completedTasks], [0, 1500]);
  await assertWell(pool);
});

test('a sandbox that does not leave when it is retired is replaced', { skip }, async (t) => {
  const pool = sandboxPool(t);
  const answer = await pool.run(() => {
    stay();
    forger().send(26, 0, 0); // asks to be replaced
    return 5;
  });
  assert.equal(answer, 5);
  await assertWell(pool);
});

test('frames that answer nothing change nothing', { skip }, async (t) => {
  const pool = sandboxPool(t);
  const answer = await pool.run(() => {
    const { send } = forger();
    const nothing = Buffer.from([1]);
    for (const slot of [-5, 99, 2 ** 31 - 1, -(2 ** 31)]) {
      for (const kind of [21, 22, 23, 24, 27]) send(kind, slot, -7, nothing);
    }
    send(20, 0, 0, Buffer.from([11, 2, 0, 0, 0, 4, 1, 0, 0, 0, 8, 1, 97])); // ready, again
    return 5;
  });
  assert.equal(answer, 5);
  await assertWell(pool);
});

for (const [name, kind] of [
  ['an item', 24],
  ['a stream', 23],
] as const) {
  test(`a stream that sends ${name} too much ends with its sandbox`, { skip }, async (t) => {
    const pool = sandboxPool(t);
    const stream = await pool.run(async function* (forged) {
      yield 1;
      await new Promise((resolve) => setImmediate(resolve)); // the frames before are sent
      const { send } = forger();
      for (let at = 0; at < 1000; at += 1) send(forged, 0, 0, Buffer.from([1]));
      yield 2;
    }, kind);
    await assert.rejects(
      async () => {
        for await (const item of stream) assert.notEqual(item, 'x');
      },
      new RegExp(`sent ${name} too much`),
    );
    await assertWell(pool);
  });
}

/** Values that could be taken for more than data. */
const values: readonly (readonly [
  name: string,
  make: () => unknown,
  check: (value: unknown) => boolean,
])[] = [
  [
    '__proto__',
    () => JSON.parse('{"__proto__":{"polluted":1}}'),
    (value) => Object.getPrototypeOf(value) === Object.prototype,
  ],
  [
    'constructor',
    () => ({ constructor: { prototype: { polluted: 1 } } }),
    (value) => typeof value === 'object',
  ],
  [
    'then',
    () => JSON.parse('[{"then":1,"toJSON":2,"toString":3,"valueOf":4}]'),
    (value) => JSON.stringify(value).includes('"then":1'),
  ],
  [
    'a name of no text',
    () => Object.assign(new Error('x'), { name: { a: 1 }, code: {}, stack: [1] }),
    (value) => value instanceof Error,
  ],
  [
    'itself as its cause',
    () => {
      const error = new Error('x');
      return Object.assign(error, { cause: error, errors: [error] });
    },
    (value) => value instanceof Error && value.cause === value,
  ],
  ['a frozen error', () => Object.freeze(new Error('x')), (value) => value instanceof Error],
];
for (const [name, make, check] of values) {
  test(`a value with ${name} is plain data, returned or thrown`, { skip }, async (t) => {
    const pool = sandboxPool(t);
    assert.ok(check(await pool.run(make)));
    const thrown = await pool
      .run((inside) => {
        throw inside();
      }, make)
      .catch((error: unknown) => error);
    assert.ok(check(thrown));
    await assertWell(pool);
  });
}

test('a getter is no data', { skip }, async (t) => {
  const pool = sandboxPool(t);
  const refused = pool.run(() => ({
    get a() {
      return 1;
    },
  }));
  await assert.rejects(refused, (error) => codeOf(error) === 'PARTITION_CODE');
  await assertWell(pool);
});

for (const which of ['the process outside', 'bubblewrap']) {
  test(`nothing is left when ${which} is killed`, { skip }, async (t) => {
    const pool = sandboxPool(t);
    await pool.warm();
    const outside = Number(pool.stats().workers[0]?.pid);
    const [inside] = childrenOfProcess(outside);
    const task = pool.run(() => silence());
    process.kill(which === 'bubblewrap' ? Number(inside) : outside, 'SIGKILL');
    await assert.rejects(task, (error) => codeOf(error) === 'WORKER_EXITED');
    await waitFor(() => !isRunning(outside) && !isRunning(Number(inside)));
    await pool.destroy();
    await assertWell(sandboxPool(t)); // the next start removes groups without a maker
  });
}

function childrenOfProcess(pid: number): string[] {
  return fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
}
