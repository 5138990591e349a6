// Options of a worker in a partition: what its code may reach, and how much of the machine it may use.

import { existsSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  choiceOption,
  integerOption,
  invalid,
  inWords,
  machineMemoryMb,
  ownOf,
  type Read,
  type Readers,
  readOptions,
} from '../../lib/index.js';

/** A layer of a partition that may be missing, where `allow` names it. */
export type MissingLayer = 'no-cgroup' | 'no-landlock' | 'no-seccomp';

/** A worker whose code is not trusted: a process in namespaces, with Landlock, seccomp and a control group. */
export interface SandboxOptions {
  readonly kind: 'sandbox';
  /** Files and folders that it may read, as absolute paths or file URLs. Default: none of the program's. */
  readonly read?: readonly (string | URL)[] | undefined;
  /** Folders in which it may also write. Default: none but its own /tmp, which ends with it. */
  readonly write?: readonly (string | URL)[] | undefined;
  /** `none` (default): it has no network. `host`: it may connect over TCP and UDP as the program may, also to names. */
  readonly network?: 'none' | 'host' | undefined;
  /** All variables of its environment beside HOME and PATH; TZ is that of the program, unless it is given. Default: none. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Memory, files in /tmp included, in MiB. Default 256. */
  readonly memoryMb?: number | undefined;
  /**
   * 0 (default): its code starts no process. A number: it may, with 64 threads for each and 64 for itself. The limit is
   * that of all threads, so that many small processes are possible, too.
   */
  readonly maxProcesses?: number | undefined;
  /** Processor time, in percent of one core. Default 100. */
  readonly cpuPercent?: number | undefined;
  /** Size of each file that it writes, and of its /tmp, in MiB. Default 64. */
  readonly fileMb?: number | undefined;
  /** Size of each result and of other values that it sends, in MiB; a larger one ends it. Default 64. */
  readonly resultMb?: number | undefined;
  /** Output that it may write before it is ended, in MiB. Default 16. */
  readonly outputMb?: number | undefined;
  /** Layers that may be missing; by default a partition without one of them is `PARTITION_UNAVAILABLE`. */
  readonly allow?: readonly MissingLayer[] | undefined;
}

/** A worker whose code is not trusted, on a kernel of its own. */
export interface VmOptions {
  readonly kind: 'vm';
  /**
   * `uml`: User-mode Linux inside of a sandbox. `gvisor`: gVisor (`runsc`), with which all output counts as stderr, and
   * `core` is not used. `auto` (default): the first of them that this system has.
   */
  readonly engine?: 'auto' | 'uml' | 'gvisor' | undefined;
  /** The kernel of `uml`, as an absolute path or a file URL. Default: `linux.uml` on PATH (package user-mode-linux). */
  readonly kernel?: string | URL | undefined;
  /** Memory of the guest, its kernel and its /tmp included, in MiB; at most what the machine has. Default 96. */
  readonly memoryMb?: number | undefined;
  /**
   * The core that it runs on; `each` (default): the next one for each guest. A guest consists of processes that wait
   * for each other at each system call: on one core they do so several times faster.
   */
  readonly core?: number | 'each' | undefined;
  /** Files and folders that it may read, as absolute paths or file URLs. Default: none of the program's. */
  readonly read?: readonly (string | URL)[] | undefined;
  /** Folders in which it may also write. Default: none but its own /tmp, which ends with it. */
  readonly write?: readonly (string | URL)[] | undefined;
  /** All variables of its environment beside HOME and PATH; TZ is that of the program, unless it is given. Default: none. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Size of each file that it writes, and of its /tmp, in MiB. Default 32. */
  readonly fileMb?: number | undefined;
  /** Size of each result and of other values that it sends, in MiB; a larger one ends it. Default 64. */
  readonly resultMb?: number | undefined;
  /** Output that it may write before it is ended, in MiB. Default 16. */
  readonly outputMb?: number | undefined;
  /** Layers of the sandbox that may be missing; by default one without them is `PARTITION_UNAVAILABLE`. */
  readonly allow?: readonly MissingLayer[] | undefined;
}

const layers: readonly MissingLayer[] = ['no-cgroup', 'no-landlock', 'no-seccomp'];
const noPaths: readonly string[] = Object.freeze([]);

/** Errors name an option as the program has written it. */
const inWorker =
  <Value, Filled>(read: (name: string, value: Value) => Filled) =>
  (name: string, value: Value): Filled =>
    read(`worker.${name}`, value);

const sandboxReaders = {
  kind: inWorker(choiceOption(['sandbox'])),
  read: inWorker(pathsOf),
  write: inWorker(pathsOf),
  network: inWorker(choiceOption(['none', 'host'])),
  env: inWorker(variables),
  memoryMb: inWorker(integerOption(256, 64, 2 ** 20)),
  maxProcesses: inWorker(integerOption(0, 0, 1000)),
  cpuPercent: inWorker(integerOption(100, 1, 100_000)),
  fileMb: inWorker(integerOption(64, 1, 2 ** 20)),
  resultMb: inWorker(integerOption(64, 1, 1024)),
  outputMb: inWorker(integerOption(16, 1, 2 ** 20)),
  allow: inWorker(missing),
} satisfies Readers<SandboxOptions>;

const vmReaders = {
  kind: inWorker(choiceOption(['vm'])),
  engine: inWorker(choiceOption(['auto', 'uml', 'gvisor'])),
  kernel: inWorker(kernelOf),
  memoryMb: inWorker(guestMemoryMb),
  core: inWorker(coreOf),
  read: inWorker(pathsOf),
  write: inWorker(pathsOf),
  env: inWorker(variables),
  fileMb: inWorker(integerOption(32, 1, 2 ** 20)),
  resultMb: inWorker(integerOption(64, 1, 1024)),
  outputMb: inWorker(integerOption(16, 1, 2 ** 20)),
  allow: inWorker(missing),
} satisfies Readers<VmOptions>;

/** The names of all options. */
export const sandboxOptionNames: readonly string[] = Object.keys(sandboxReaders);
export const vmOptionNames: readonly string[] = Object.keys(vmReaders);

export type FilledSandbox = Read<typeof sandboxReaders>;

export type FilledVm = Read<typeof vmReaders>;

export type FilledPartition = FilledSandbox | FilledVm;

/** Checks and fills the options of a partition. Throws `OPTION_INVALID`. */
export function fillPartition(options: SandboxOptions | VmOptions): FilledPartition {
  const given = ownOf(options);
  return given.kind === 'vm'
    ? readOptions('the options of worker', given, vmReaders)
    : readOptions('the options of worker', given, sandboxReaders);
}

/** Returns the kind that was given for a partition; `sandbox` by default. Throws `OPTION_INVALID`. */
export const partitionKindOption = choiceOption(['sandbox', 'vm']);

function kernelOf(name: string, given: unknown): string | undefined {
  return given === undefined ? undefined : pathOf(name, given);
}

const sizeOfGuest = integerOption(96, 64, 2 ** 20);

/** A kernel with more memory than the machine prepares it for so long that it seems to hang. */
function guestMemoryMb(name: string, given: number | undefined): number {
  const memoryMb = sizeOfGuest(name, given);
  const most = Math.floor(machineMemoryMb());
  if (memoryMb <= most) return memoryMb;
  throw invalid(name, given, `at most ${most}, the MiB that this machine has`);
}

function coreOf(name: string, given: unknown = 'each'): number | 'each' {
  if (given === 'each') return given;
  if (typeof given === 'number' && Number.isInteger(given) && given >= 0) return given;
  throw invalid(name, given, "the number of a core, or 'each'");
}

function pathsOf(name: string, paths: readonly unknown[] = noPaths): readonly string[] {
  if (!Array.isArray(paths)) throw invalid(name, paths, 'an array of paths');
  return paths.map((path: unknown, at) => pathOf(`${name}[${at}]`, path));
}

function pathOf(name: string, given: unknown): string {
  const isUrl = given instanceof URL || (typeof given === 'string' && given.startsWith('file:'));
  const path = isUrl ? fileURLToPath(given) : given;
  if (typeof path !== 'string' || !isAbsolute(path)) {
    throw invalid(name, given, 'an absolute path or a file URL');
  }
  if (!existsSync(path)) throw invalid(name, given, 'a file or folder that exists');
  return path;
}

/** Variables of the environment that no partition has otherwise. */
const fixedVariables: ReadonlyMap<string, string> = new Map([
  ['HOME', 'a partition has /tmp'],
  ['PATH', 'a partition has no programs'],
]);

function variables(name: string, env: unknown = {}): Readonly<Record<string, string>> {
  if (typeof env !== 'object' || env === null) throw invalid(name, env, 'an object of texts');
  const read: Record<string, string> = {};
  for (const [key, value] of Object.entries(env)) {
    if (typeof value !== 'string' || value.includes('\0')) {
      throw invalid(`${name}.${key}`, value, 'a text without zeros');
    }
    const fixed = fixedVariables.get(key);
    if (fixed !== undefined) throw invalid(`${name}.${key}`, value, `left out: ${fixed}`);
    if (key === '' || /[=\0]/.test(key)) throw invalid(name, env, `without ${inWords(key)}`);
    read[key] = value;
  }
  return read;
}

function missing(name: string, allowed: unknown = noPaths): readonly MissingLayer[] {
  if (!Array.isArray(allowed)) throw invalid(name, allowed, 'an array of layers');
  return allowed.map((given: unknown, at) => {
    const layer = layers.find((each) => each === given);
    if (layer === undefined) throw invalid(`${name}[${at}]`, given, `one of ${layers.join(', ')}`);
    return layer;
  });
}
