// Attempts of hostile code, with what each kind of partition answers. Sent into partitions (attempts.test.ts).
// Not here: attempts by raw system calls (raw.test.ts), ends of partitions (ends.test.ts).
// Long (over 400 lines): one table.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import fs from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import type { SandboxOptions } from '../../src/public.js';
import { requirePartition } from './hostile.js';
import { codeOf, outcome } from './support.js';

type Limits = Omit<SandboxOptions, 'kind'>;

export interface Attempt {
  /** The layer of a sandbox that refuses it, and what is tried. */
  readonly name: string;
  readonly run: () => unknown;
  /** The result of `run` in a sandbox: the code of an error, or `done`. */
  readonly seen: unknown;
  /**
   * The same in a guest that answers otherwise: a guest has files, processes and sockets of its own, and what is done
   * with them stays in it. A pattern where the kernel of Debian has more than our own: a network of its own, and
   * processes with pipes.
   */
  readonly uml?: unknown;
  readonly gvisor?: unknown;
  readonly limits?: Limits;
  /** True: guests have no such option. */
  readonly isOfSandbox?: true;
}

export const attempts: readonly Attempt[] = [
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
    gvisor: 'done',
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
    uml: 'ENOENT',
    gvisor: 'done',
  },
  // Rights: Landlock.
  {
    name: 'Landlock: the root folder',
    run: () => outcome(() => fs.readdirSync('/')),
    seen: 'EACCES',
    gvisor: 'done',
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
    uml: 'EROFS',
    gvisor: 'EROFS',
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
    uml: 'done',
  },
  {
    name: 'Landlock: its own score',
    run: () => outcome(() => fs.writeFileSync('/proc/self/oom_score_adj', '-1000')),
    seen: 'EACCES',
    gvisor: 'done',
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
    gvisor: 'done',
  },
  // Other processes: the pid namespace.
  {
    name: 'processes: only its own are there',
    run: otherProcesses,
    seen: [],
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
    uml: 'EPERM',
    gvisor: 'WORKER_EXITED',
  },
  {
    name: 'processes: a signal to all',
    run: () => outcome(() => killAll()),
    seen: 'ESRCH',
    uml: 'done',
  },
  // System calls: seccomp.
  {
    name: 'seccomp: a process',
    run: () => codeOf(spawnSync(process.execPath, ['-v']).error),
    seen: 'EPERM',
    uml: /^(ENOSYS|undefined)$/,
    gvisor: 'undefined',
  },
  {
    name: 'seccomp: a shell',
    run: () => codeOf(spawnSync('/bin/sh', ['-c', 'id']).error),
    seen: 'EPERM',
    uml: /^(ENOSYS|ENOENT)$/,
    gvisor: 'ENOENT',
  },
  {
    name: 'seccomp: TCP',
    run: () => failureOf(() => connect(80, '127.0.0.1')),
    seen: 'EPERM',
    uml: /^(ENOSYS|ENETUNREACH)$/,
    gvisor: 'ECONNREFUSED',
  },
  {
    name: 'seccomp: a TCP server',
    run: () => failureOf(() => createServer().listen(0)),
    seen: 'EPERM',
    uml: /^(ENOSYS|done)$/,
    gvisor: 'done',
  },
  {
    name: 'seccomp: a unix socket',
    run: () => failureOf(() => connect('/run/docker.sock')),
    seen: 'EPERM',
    uml: /^(ENOSYS|ENOENT)$/,
    gvisor: 'ENOENT',
  },
  {
    name: 'seccomp: an abstract unix socket',
    run: () => failureOf(() => connect('\0manycore')),
    seen: 'EPERM',
    uml: /^(ENOSYS|ECONNREFUSED)$/,
    gvisor: 'ECONNREFUSED',
  },
  {
    name: 'seccomp: UDP',
    run: () => failureOf(() => createSocket('udp4').bind(0)),
    seen: 'EPERM',
    uml: /^(ENOSYS|done)$/,
    gvisor: 'done',
  },
  {
    name: 'seccomp: a link',
    run: () => outcome(() => fs.symlinkSync('/etc', '/tmp/etc')),
    seen: 'EPERM',
    uml: 'done',
    gvisor: 'done',
  },
  {
    name: 'seccomp: a hard link',
    run: () => outcome(() => fs.linkSync(process.execPath, '/tmp/node')),
    seen: 'EPERM',
    uml: 'EXDEV',
    gvisor: 'EXDEV',
  },
  {
    name: 'seccomp: another mode',
    run: () => outcome(() => fs.writeFileSync('/tmp/x', 'x') ?? fs.chmodSync('/tmp/x', 0o4777)),
    seen: 'EPERM',
    uml: 'done',
    gvisor: 'done',
  },
  {
    name: 'seccomp: other watches',
    run: () => outcome(() => fs.watch('/tmp').close()),
    seen: 'EPERM',
    uml: 'done',
    gvisor: 'done',
  },
  {
    name: 'seccomp: another user',
    run: () => outcome(() => process.setuid?.(0)),
    seen: 'EPERM',
    gvisor: 'done',
  },
  {
    name: 'seccomp: another priority',
    run: () => outcome(() => process.getBuiltinModule('node:os').setPriority(-5)),
    seen: 'ERR_SYSTEM_ERROR',
    gvisor: 'done',
  },
  // Resources that it has.
  {
    name: 'environment: three variables',
    run: () =>
      Object.keys(process.env)
        .filter((name) => name !== 'PWD')
        .sort(),
    seen: ['HOME', 'PATH', 'TZ'],
    uml: ['GIVEN', 'HOME', 'LD_PRELOAD', 'PATH', 'TZ'],
    gvisor: ['GIVEN', 'HOME', 'PATH', 'TZ'],
  },
  {
    name: 'descriptors: its own',
    run: ownDescriptors,
    seen: ['/dev/null', 'anon_inode', 'pipe', 'socket'],
    uml: ['/dev/null', '/dev/ttyS0', 'anon_inode', 'pipe'],
    gvisor: ['/dev/null', 'anon_inode', 'host', 'pipe'],
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
    name: 'limits: that of files, which cannot be raised',
    run: () => outcome(() => assert.match(fs.readFileSync('/proc/self/limits', 'utf8'), fileLimit)),
    seen: 'done', // gVisor has no such file
    gvisor: 'ENOENT',
  },
  {
    name: 'rights: none, and none to be gained',
    run: rights,
    seen: 'CapInh 0 CapPrm 0 CapEff 0 CapBnd 0 CapAmb 0 NoNewPrivs 1 Seccomp 2 Seccomp_filters 2',
    // The kernel of a guest has no filter: that around it is the filter of the sandbox.
    uml: /^CapInh 0 CapPrm 0 CapEff 0 CapBnd \w+ CapAmb 0 NoNewPrivs 1\b/,
    gvisor: /^CapInh 0 CapPrm 0 CapEff 0 CapBnd 0\b/,
  },
  {
    name: 'options: TZ of env is its time zone',
    run: () => new Intl.DateTimeFormat('en').resolvedOptions().timeZone,
    seen: 'Asia/Tokyo',
    limits: { env: { TZ: 'Asia/Tokyo' } },
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
    isOfSandbox: true,
  },
  {
    name: "options: network 'host' finds names",
    run: () => lookup('localhost', { family: 4 }).then(({ address }) => address),
    seen: '127.0.0.1',
    limits: { network: 'host' },
    isOfSandbox: true,
  },
  {
    name: "options: network 'host' shows no other file",
    run: () => outcome(() => fs.readFileSync('/etc/passwd')),
    seen: 'ENOENT',
    limits: { network: 'host' },
    isOfSandbox: true,
  },
  {
    name: "options: network 'host' has no unix sockets",
    run: () => failureOf(() => connect('\0manycore')),
    seen: 'EPERM',
    limits: { network: 'host' },
    isOfSandbox: true,
  },
  {
    name: 'worker threads work',
    run: () =>
      answerOf(new Worker('require("worker_threads").parentPort.postMessage(5)', { eval: true })),
    seen: 5,
  },
];

/** The code of the error, or `done`: it has connected, or listens. */
function failureOf(begin: () => Socket | Server | UdpSocket): Promise<unknown> {
  return new Promise((resolve) => {
    const socket = begin();
    const done = (): void => {
      if ('close' in socket) socket.close();
      else socket.destroy();
      resolve('done');
    };
    socket.once('connect', done).once('listening', done);
    socket.once('error', (error) => resolve('code' in error ? error.code : String(error)));
  });
}

function answerOf(worker: Worker): Promise<unknown> {
  return new Promise(
    (resolve, reject) => void worker.once('message', resolve).once('error', reject),
  );
}

/** Rights of its process beside those of its user, as Linux numbers them. */
function rights(): string {
  const status = fs.readFileSync('/proc/self/status', 'utf8');
  const found = status.matchAll(/^(Cap\w+|NoNewPrivs|Seccomp\w*):\s*(?:0+(?=\w))?(\w+)$/gm);
  return [...found].map(([, name, value]) => `${name} ${value}`).join(' ');
}

/** The limit that the partition has: the default of a sandbox, or that of the test for guests. */
const fileLimit = /^Max file size +(67108864|1048576) +\1 /m;

/** Command lines of all processes but the first and this one; threads of a kernel have none. */
function otherProcesses(): string[] {
  return fs
    .readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && ![1, process.pid].includes(Number(name)))
    .map((pid) => fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
    .filter((command) => command !== '');
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

function killFirst(): void {
  requirePartition();
  process.kill(1, 'SIGKILL');
}

function killAll(): void {
  requirePartition();
  process.kill(-1, 'SIGKILL');
}
