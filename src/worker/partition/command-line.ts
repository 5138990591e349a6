// The command line that puts a program into a sandbox: `manycore-enter run` makes control groups and stays outside,
// bubblewrap makes the namespaces, `manycore-enter enter` sets Landlock and seccomp, and becomes the program.
// Not here: the limits themselves (crates/enter), the start of a worker (sandbox.ts).

import { readlinkSync } from 'node:fs';
import { type Binding, isWithin, networkFiles, packageFilesAbove } from './files.js';
import { type Guest, guestBindings, guestEnter, guestFolders, guestWords } from './guest.js';
import { partitionTools } from './layers.js';
import type { FilledSandbox } from './options.js';

/** The descriptors of a worker's channel begin here: it gets no others beside its output. */
export const firstChannelFd = 3;
const mib = 2 ** 20;
/** Threads of node and of its code; a process that the code starts has as many. */
const threadsPerProcess = 64;
/** The part of the memory that V8's old generation may have: the rest is for buffers and node itself. */
const heapShare = 0.75;
const user = '65534';
const home = '/tmp';

export interface SandboxedProgram {
  readonly sandbox: FilledSandbox;
  /** The files that it gets beside those of its options. */
  readonly bindings: readonly Binding[];
  /** The last descriptor that it gets. To the one behind it `run` writes why the kernel has ended something. */
  readonly lastFd: number;
  /** True: its input is that of this process, through a pipe: a terminal would take what it writes there. */
  readonly hasInput: boolean;
  /** The program and its arguments. */
  readonly command: readonly string[];
  /** Set: the program runs on a kernel of its own. */
  readonly guest?: Guest | undefined;
}

/** The limit of V8's old generation that fits into the memory of a sandbox, in MiB. */
export function heapMb({ memoryMb }: FilledSandbox): number {
  return Math.floor(memoryMb * heapShare);
}

/** The limit of processes and threads in a sandbox: a process counts by its threads. */
export function maxTasks({ maxProcesses }: Pick<FilledSandbox, 'maxProcesses'>): number {
  return threadsPerProcess * (1 + maxProcesses);
}

/** Returns the program to start, and its arguments. Throws `PARTITION_UNAVAILABLE`. */
export function commandLine(program: SandboxedProgram): string[] {
  const { sandbox, command, guest } = program;
  const { enter, bubblewrap } = partitionTools(sandbox.allow);
  const ofGuest = guest === undefined ? [] : guestBindings(guest, enter);
  const ofNetwork = sandbox.network === 'host' ? networkFiles() : [];
  const bindings = [...program.bindings, ...ofGuest, ...ofNetwork, ...readable(sandbox)];
  const inside = guest === undefined ? enter : guestEnter;
  const own = guest === undefined ? [{ from: enter, to: enter }] : [];
  return [
    ...[enter, 'run', ...limits(program), '--'],
    ...[bubblewrap, ...namespaces(sandbox)],
    ...[...bindings, ...own].flatMap(({ from, to }) => ['--ro-bind', from, to]),
    ...sandbox.write.flatMap((path) => ['--bind', path, path]),
    ...(guest === undefined ? [] : guestFolders),
    ...['--remount-ro', '/dev', '--remount-ro', '/'],
    ...['--', inside, 'enter', ...rights(sandbox, bindings)],
    ...(guest === undefined ? [] : guestWords(guest)),
    ...['--', ...command],
  ];
}

/** Options of `manycore-enter run`. */
export function limits({ sandbox, lastFd, hasInput }: SandboxedProgram): string[] {
  const { memoryMb, cpuPercent, allow } = sandbox;
  const ofRun = [
    ...['--parent', `${process.pid}`, '--status', `${lastFd + 1}`, '--keep', `${lastFd}`],
    ...(hasInput ? ['--input'] : []),
  ];
  if (allow.includes('no-cgroup')) return [...ofRun, '--no-cgroup'];
  const values = { memory: memoryMb * mib, tasks: maxTasks(sandbox), cpu: cpuPercent };
  return [
    ...ofRun,
    ...Object.entries(values).flatMap(([name, value]) => [`--${name}`, `${value}`]),
  ];
}

/** The environment of a partition. */
export function variables({ env }: FilledSandbox): readonly string[] {
  const all = { TZ: env['TZ'] ?? timeZone(), ...env, HOME: home, PATH: '' };
  return [
    '--clearenv',
    ...Object.entries(all).flatMap(([name, value]) => ['--setenv', name, value]),
  ];
}

function namespaces(sandbox: FilledSandbox): string[] {
  const { network, fileMb } = sandbox;
  return [
    '--unshare-all',
    ...(network === 'host' ? ['--share-net'] : []),
    '--die-with-parent',
    '--new-session',
    ...['--uid', user, '--gid', user, '--hostname', 'partition', '--cap-drop', 'ALL'],
    ...variables(sandbox),
    ...['--proc', '/proc', '--dev', '/dev', '--size', `${fileMb * mib}`, '--tmpfs', home],
    ...['--chdir', home],
  ];
}

/** The name of the time zone, by the link that systems have for it: `Intl` has to load its data first. */
function timeZone(): string {
  if (process.env['TZ'] === undefined) {
    try {
      const [, name] = readlinkSync('/etc/localtime').split('/zoneinfo/');
      if (name !== undefined) return name;
    } catch {
      // It is a file, or is not there.
    }
  }
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

function rights(sandbox: FilledSandbox, bindings: readonly Binding[]): string[] {
  const { write, fileMb, maxProcesses, network, allow } = sandbox;
  return [
    ...['/proc', ...bindings.map(({ to }) => to)].flatMap((path) => ['--read', path]),
    ...[home, '/dev', ...write].flatMap((path) => ['--write', path]),
    ...['--file-bytes', `${fileMb * mib}`],
    ...(maxProcesses > 0 ? ['--fork'] : []),
    ...(network === 'host' ? ['--network'] : []),
    ...allow.filter((layer) => layer !== 'no-cgroup').map((layer) => `--${layer}`),
  ];
}

/**
 * Binds what may be read beside own files: the paths of the options, and the `package.json` files above them.
 * Nothing below a folder of `write`, which shows it already: a link that a partition has left there would be
 * followed when the next one starts.
 */
export function readable({ read, write }: FilledSandbox): Binding[] {
  const all = [...read, ...[...read, ...write].flatMap(packageFilesAbove)];
  const isOpen = (path: string): boolean => write.some((folder) => isWithin(path, folder));
  return [...new Set(all)]
    .filter((path) => !isOpen(path))
    .map((path) => ({ from: path, to: path }));
}
