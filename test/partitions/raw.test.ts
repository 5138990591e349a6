// Hostile code with system calls of its own, in partitions of all engines. A sandbox refuses all that are not in its
// list; a guest has a kernel of its own, which answers for itself.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Pool, SandboxOptions } from '../../src/public.js';
import { assertWell, type Limits, skipWall, type Wall, wallPool, walls } from './hostile.js';
import { attackAddon, type Calls, callsOf, skipRaw } from './raw.js';
import { codeOf, sandboxPool, skip } from './support.js';

interface Attempt {
  readonly name: string;
  readonly run: (calls: Calls) => unknown;
  /** Answers where they are not EPERM; `any`: those of its kernel inside, which differ by its version. */
  readonly sandbox?: string;
  readonly uml?: string;
  readonly gvisor?: string;
}

/** Flags of clone(2), and of unshare(2). */
const newUser = 0x1000_0000;
const newMounts = 0x2_0000;
/** The owner of keys: the session. */
const session = -3;
const currentFolder = -100;

/**
 * Other answers than an error stay inside: gVisor counts a user, a namespace, a ring or a socket of its own; its log and
 * that of a guest kernel are about the guest alone.
 */
const attempts: readonly Attempt[] = [
  // Memory of other processes.
  { name: 'ptrace: attach', run: ({ by }) => by('ptrace', 16, 1, 0, 0) },
  { name: 'ptrace: seize', run: ({ by }) => by('ptrace', 0x4206, 1, 0, 0) },
  {
    name: 'process_vm_readv',
    run: ({ by }) => by('process_vm_readv', 1, vector(), 1, vector(), 1, 0),
    ...{ uml: 'any', gvisor: 'ENOSYS' },
  },
  {
    name: 'process_vm_writev',
    run: ({ by }) => by('process_vm_writev', 1, vector(), 1, vector(), 1, 0),
    ...{ uml: 'any', gvisor: 'ENOSYS' },
  },
  { name: 'kcmp', run: ({ by }) => by('kcmp', 1, 1, 2, 0, 0), uml: 'any' },
  {
    name: 'pidfd_getfd',
    run: ({ by }) => by('pidfd_getfd', 3, 0, 0),
    uml: 'any',
    gvisor: 'ENOSYS',
  },
  // Interfaces of the kernel that have been ways out.
  {
    name: 'io_uring_setup',
    run: ({ by }) => by('io_uring_setup', 8, Buffer.alloc(256)),
    ...{ sandbox: 'ENOSYS', uml: 'any', gvisor: 'any' },
  },
  { name: 'userfaultfd', run: ({ by }) => by('userfaultfd', 1), uml: 'any', gvisor: 'ENOSYS' },
  { name: 'bpf', run: ({ by }) => by('bpf', 0, bpfMap(), 128), uml: 'any' },
  {
    name: 'perf_event_open',
    run: ({ by }) => by('perf_event_open', perfEvent(), 0, -1, -1, 0),
    ...{ uml: 'any', gvisor: 'ENODEV' },
  },
  { name: 'keyctl', run: ({ by }) => by('keyctl', 0, session, 1), uml: 'any', gvisor: 'EACCES' },
  {
    name: 'add_key',
    run: ({ by }) => by('add_key', 'user', 'name', 'x', 1, session),
    ...{ uml: 'any', gvisor: 'EACCES' },
  },
  {
    name: 'request_key',
    run: ({ by }) => by('request_key', 'user', 'name', 0, session),
    ...{ uml: 'any', gvisor: 'EACCES' },
  },
  { name: 'kexec_load', run: ({ by }) => by('kexec_load', 0, 0, 0, 0), uml: 'any' },
  { name: 'init_module', run: ({ by }) => by('init_module', 'x', 1, ''), uml: 'any' },
  { name: 'finit_module', run: ({ by }) => by('finit_module', 3, '', 0), uml: 'any' },
  { name: 'delete_module', run: ({ by }) => by('delete_module', 'x', 0), uml: 'any' },
  // Files and namespaces.
  { name: 'mount', run: ({ by }) => by('mount', 'tmpfs', '/tmp', 'tmpfs', 0, 0) },
  { name: 'umount2', run: ({ by }) => by('umount2', '/proc', 2) },
  { name: 'pivot_root', run: ({ by }) => by('pivot_root', '/tmp', '/tmp') },
  { name: 'chroot', run: ({ by }) => by('chroot', '/tmp') },
  { name: 'unshare: users', run: ({ by }) => by('unshare', newUser), uml: 'any', gvisor: 'any' },
  { name: 'unshare: mounts', run: ({ by }) => by('unshare', newMounts), gvisor: 'any' },
  { name: 'setns', run: ({ by }) => by('setns', 3, 0), uml: 'EINVAL', gvisor: 'EOPNOTSUPP' },
  {
    name: 'open_by_handle_at',
    run: ({ by }) => by('open_by_handle_at', 3, Buffer.alloc(64), 0),
    ...{ uml: 'any', gvisor: 'EOPNOTSUPP' },
  },
  {
    name: 'a device of its own making',
    run: ({ by }) => {
      by('mknodat', currentFolder, '/tmp/mem', 0o20666, 0x101);
      return by('openat', currentFolder, '/tmp/mem', 0, 0);
    },
    ...{ sandbox: 'ENOENT', uml: 'ENOENT', gvisor: 'ENXIO' },
  },
  // The system.
  { name: 'reboot', run: ({ by }) => by('reboot', 0xfee1_dead, 672_274_793, 0, 0) },
  { name: 'sethostname', run: ({ by }) => by('sethostname', 'x', 1) },
  { name: 'setdomainname', run: ({ by }) => by('setdomainname', 'x', 1) },
  { name: 'settimeofday', run: ({ by }) => by('settimeofday', Buffer.alloc(16), 0) },
  { name: 'clock_settime', run: ({ by }) => by('clock_settime', 0, Buffer.alloc(16)) },
  { name: 'swapon', run: ({ by }) => by('swapon', '/tmp/x', 0), uml: 'any' },
  { name: 'acct', run: ({ by }) => by('acct', '/tmp/x'), uml: 'any' },
  { name: 'vhangup', run: ({ by }) => by('vhangup') },
  {
    name: 'syslog',
    run: ({ by }) => by('syslog', 3, Buffer.alloc(100), 100),
    uml: 'any',
    gvisor: 'any',
  },
  { name: 'setuid', run: ({ by }) => by('setuid', 1000) },
  // Sockets.
  { name: 'a unix socket', run: ({ by }) => by('socket', 1, 1, 0), uml: 'any', gvisor: 'any' },
  {
    name: 'a socket of the kernel',
    run: ({ by }) => by('socket', 16, 3, 0),
    uml: 'any',
    gvisor: 'any',
  },
  { name: 'raw packets', run: ({ by }) => by('socket', 17, 3, 0), uml: 'any' },
  {
    name: 'a socket of machines',
    run: ({ by }) => by('socket', 40, 1, 0),
    uml: 'any',
    gvisor: 'EAFNOSUPPORT',
  },
  {
    name: 'a socket of ciphers',
    run: ({ by }) => by('socket', 38, 5, 0),
    uml: 'any',
    gvisor: 'EAFNOSUPPORT',
  },
];

/** One part of memory, for calls that take a list of them. */
function vector(): Buffer {
  const made = Buffer.alloc(16);
  made.writeBigUInt64LE(0x40_0000n, 0);
  made.writeBigUInt64LE(8n, 8);
  return made;
}

/** The attributes of a map with one place. */
function bpfMap(): Buffer {
  const made = Buffer.alloc(128);
  for (const [at, value] of [2, 4, 4, 1].entries()) made.writeUInt32LE(value, at * 4);
  return made;
}

/** A counter of instructions. */
function perfEvent(): Buffer {
  const made = Buffer.alloc(128);
  made.writeUInt32LE(128, 4);
  made.writeUInt32LE(1, 8);
  return made;
}

/** The layer of a partition that answers system calls. */
const layers: Readonly<Record<Wall, string>> = {
  sandbox: 'seccomp',
  uml: 'the kernel of the guest',
  gvisor: 'the kernel of gVisor',
};

for (const wall of walls) {
  test(`${wall}: ${layers[wall]} refuses each system call, or it stays inside`, {
    skip: skipWall(wall) || skipRaw,
  }, async (t) => {
    const pool = wallPool(t, wall, { read: [attackAddon()] });
    const calls = pool.with({ timeoutMs: 20_000 });
    for (const attempt of attempts) {
      const seen = await calls.run((run, open, addon) => run(open(addon)), ...sent(attempt.run));
      const expected = attempt[wall] ?? 'EPERM';
      if (expected !== 'any') assert.equal(seen, expected, `${layers[wall]}: ${attempt.name}`);
    }
    assert.equal(pool.stats().exitedWorkers, 0);
    await assertWell(pool);
  });
}

/** Arguments for a call that runs `run` with the addon. */
function sent<T>(run: (calls: Calls) => T): [typeof run, typeof callsOf, string] {
  return [run, callsOf, attackAddon()];
}

/** Calls that a filter with these options allows beside those of its lists. */
const more: readonly (readonly [Omit<SandboxOptions, 'kind'>, readonly string[]])[] = [
  [{}, []],
  [{ maxProcesses: 1 }, ['vfork', 'waitid', 'socketpair']],
  [{ network: 'host' }, ['socket']],
];
for (const [limits, names] of more) {
  const options = Object.keys(limits).join() || 'no options';
  test(`with ${options}: seccomp refuses each system call that is not in its list`, {
    skip: skip || skipRaw,
  }, async (t) => {
    const pool = sandboxPool(t, { read: [attackAddon()], ...limits });
    const refused = (calls: Calls, allowed: readonly string[], hasNetwork: boolean) => {
      const { numbers, plain, older, byArgument, network, numbered } = calls;
      const open = new Set([...plain, ...older, ...byArgument, ...(hasNetwork ? network : [])]);
      for (const name of allowed) open.add(numbers[name] ?? -1);
      // The kernel passes these by all filters (uretprobe, uprobe), and ends a program that has no such probe.
      if (process.arch === 'x64') for (const number of [335, 336]) open.add(number);
      const answers: Record<string, number[]> = {};
      let tried = 0;
      for (let number = 0; number <= 470; number += 1) {
        if (open.has(number)) continue;
        tried += 1;
        // The second number is that of the same call for programs with short addresses.
        for (const each of [number, 0x4000_0000 + number]) {
          const answer = numbered(each, -1, -1, -1, -1, -1, -1);
          answers[answer] = [...(answers[answer] ?? []), each];
        }
      }
      const { EPERM: _, ...others } = answers;
      return { others, tried, missing: [numbers['io_uring_setup'], numbers['clone3']] };
    };
    const { others, tried, missing } = await pool.run(
      (run, open, addon, allowed, hasNetwork) => run(open(addon), allowed, hasNetwork),
      refused,
      callsOf,
      attackAddon(),
      names,
      limits.network === 'host',
    );
    assert.deepEqual(others, { ENOSYS: missing });
    assert.ok(tried > 300, String(tried));
    assert.equal(pool.stats().exitedWorkers, 0);
    await assertWell(pool);
  });
}

test('seccomp refuses arguments of calls that it allows', {
  skip: skip || skipRaw,
}, async (t) => {
  const pool = sandboxPool(t, { read: [attackAddon()] });
  const refused = ({ by }: Calls): string[] => {
    const all: string[] = [];
    // Input for a terminal, its owner, and others. Five requests are allowed, none of these.
    for (const request of [0x5412, 0x540e, 0x541c, 0x5408, 0x4004_667f])
      all.push(by('ioctl', 0, request, 0));
    // Names of threads are 15 and 16.
    for (let option = 1; option < 80; option += 1) {
      if (option !== 15 && option !== 16) all.push(by('prctl', option, 1, 0, 0, 0));
    }
    // A thread in namespaces of its own, a process.
    for (let bit = 17; bit < 32; bit += 1) {
      const flag = 2 ** bit;
      if ((0x7e02_0000 & flag) !== 0) all.push(by('clone', 0x1_0000 + flag, 0, 0, 0, 0));
    }
    all.push(by('clone', 17, 0, 0, 0, 0));
    // Files with the rights of their owner.
    for (const mode of [0o4777, 0o2777]) all.push(by('openat', -100, '/tmp/x', 0o102, mode));
    return [...new Set(all)];
  };
  assert.deepEqual(await pool.run((run, open, addon) => run(open(addon)), ...sent(refused)), [
    'EPERM',
  ]);
  await assertWell(pool);
});

test('seccomp ends a sandbox for a call by the gate of 32-bit programs', {
  skip: skip || skipRaw || (process.arch !== 'x64' && 'this processor has none'),
}, async (t) => {
  const pool = sandboxPool(t, { read: [attackAddon()] });
  const attempt = pool.run(
    (run, open, addon) => run(open(addon)),
    ...sent(({ raw }) => raw.compat(20)),
  );
  // 159: the signal of a filter.
  await assert.rejects(attempt, /exit code 159/);
  await assertWell(pool);
});

interface Bombs {
  readonly limits: Limits & { readonly maxProcesses?: number };
  /** The end of code that ends itself after it has been refused a process. */
  readonly full: RegExp;
  /** The end of code that never stops. */
  readonly bomb: RegExp;
  readonly bombMs: number;
}

const bombs: Readonly<Record<Wall, Bombs>> = {
  sandbox: {
    limits: { maxProcesses: 1, memoryMb: 1024 },
    full: /its limit of 128 processes and threads \(maxProcesses\)/,
    bomb: /TASK_TIMED_OUT/,
    bombMs: 1000,
  },
  uml: {
    limits: {},
    full: /its limit of 64 processes and threads/,
    bomb: /TASK_TIMED_OUT/,
    bombMs: 1000,
  },
  // The kernel of gVisor ends when that of the machine refuses it a process.
  gvisor: {
    limits: { memoryMb: 1024 }, // so that the other limit comes first
    full: /its limit of 1024 processes and threads/,
    bomb: /its limit of 1024 processes and threads/,
    bombMs: 60_000,
  },
};

async function endOf(
  pool: Pool,
  timeoutMs: number,
  attempt: (calls: Calls) => unknown,
): Promise<string> {
  const end: unknown = await pool
    .with({ timeoutMs })
    .run((run, open, addon) => run(open(addon)), ...sent(attempt))
    .then(String, (error: unknown) => error);
  return `${codeOf(end)} ${end}`;
}

for (const wall of walls) {
  test(`${wall}: the control group ends processes that start processes`, {
    skip: skipWall(wall) || skipRaw,
  }, async (t: TestContext) => {
    const { limits, full, bomb, bombMs } = bombs[wall];
    const options = { onOutput: () => {}, graceMs: 50 };
    const read = [attackAddon()];
    const pool =
      wall === 'sandbox'
        ? sandboxPool(t, { ...limits, read }, options)
        : wallPool(t, wall, { ...limits, read }, options);
    const filled = await endOf(pool, 60_000, ({ raw }) => {
      raw.fill();
      process.exit(1);
    });
    assert.match(filled, full);
    assert.match(await endOf(pool, bombMs, ({ raw }) => raw.bomb()), bomb);
    assert.ok((pool.stats().overLimit?.tasks ?? 0) >= 1);
    await assertWell(pool);
  });
}

test('seccomp refuses all processes of a sandbox without maxProcesses', {
  skip: skip || skipRaw,
}, async (t) => {
  const pool = sandboxPool(t, { read: [attackAddon()] });
  const attempt = ({ raw }: Calls): number[] => [raw.bomb(), raw.fill()];
  assert.deepEqual(
    await pool.run((run, open, addon) => run(open(addon)), ...sent(attempt)),
    [-1, 0],
  );
  await assertWell(pool);
});
