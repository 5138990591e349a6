// Findings about this machine: cores, and quotas that Node does not see; descriptors; sizes of thread pools
// in the environment; rights of `manycore trace`; parts of partitions. Each value comes from a file of the kernel; a missing file
// leaves its line out.

import { accessSync, constants, statfsSync } from 'node:fs';
import { availableParallelism, cpus, release, totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import { packageVersion } from '../../../lib/index.js';
import { missingTraceRights, textOf } from '../../../proc/index.js';
import { hasOuterPids } from '../../../syscalls/index.js';
import {
  type GrantedCores,
  grantedCores,
  type PartitionLayer,
  partitionLayers,
  type VmProgram,
  vmPrograms,
} from '../../../worker/index.js';
import { counted, type Finding } from './doctor-report.js';

export function machineFindings(): Finding[] {
  const cores = grantedCores();
  const limits = textOf('/proc/self/limits');
  return [
    versions(),
    coresFinding(cores, availableParallelism(), cpus().length),
    ...poolSizeFinding(process.env['UV_THREADPOOL_SIZE'], cores.count),
    ...descriptorsFinding(limits),
    ...sharedMemoryFinding(),
    ...memoryFinding(process.constrainedMemory() ?? 0, getHeapStatistics().heap_size_limit),
    ...traceFinding(rightsHere()),
    ...debuggingFinding(textOf('/proc/sys/kernel/yama/ptrace_scope')),
    ...partitionFindings(partitionLayers(), vmPrograms()),
  ];
}

function versions(): Finding {
  const { platform, arch } = process;
  const detail = `manycore ${packageVersion()}, Node ${process.versions.node} (V8 ${process.versions.v8}), ${platform}-${arch}, kernel ${release()}`;
  return { what: 'versions', state: 'info', detail };
}

/** `seen`: `os.availableParallelism()`; `listed`: the length of `os.cpus()`. */
export function coresFinding(
  { count, reason }: GrantedCores,
  seen: number,
  listed: number,
): Finding {
  const what = 'cores';
  const detail = `${count} granted: ${reason}`;
  const wrong = [
    ...(seen === count ? [] : [`os.availableParallelism() says ${seen}`]),
    ...(listed === count ? [] : [`os.cpus() lists ${listed}`]),
  ];
  if (wrong.length === 0) return { what, state: 'info', detail };
  // Node's documentation discourages os.cpus() for this; Node itself uses the other count.
  const isQuota = seen > count && !reason.startsWith('MANYCORE_CORES');
  return {
    what,
    state: isQuota ? 'advice' : 'info',
    detail: `${detail}; ${wrong.join(', ')}`,
    ...(isQuota && {
      cost: 'what sizes itself by Node starts too much, and is halted whenever the quota is used up',
      remedy: `give it its sizes by hand: ${counted(count, 'worker')}; manycore counts right by itself`,
    }),
  };
}

/** Empty when the environment sets no size. */
export function poolSizeFinding(given: string | undefined, cores: number): Finding[] {
  if (given === undefined) return [];
  const what = 'UV_THREADPOOL_SIZE';
  const threads = Number.parseInt(given, 10);
  const most = Math.max(16, 4 * cores);
  if (!(threads > 0)) {
    const cost = 'all of fs, crypto, zlib and dns.lookup goes through one thread';
    const detail = `"${given}" counts as 1`;
    return [{ what, state: 'advice', detail, cost, remedy: `set it to ${Math.max(4, cores)}` }];
  }
  const detail = `${threads} for each program that is started from here`;
  if (threads <= most) return [{ what, state: 'info', detail }];
  return [
    {
      what,
      state: 'advice',
      detail: `${detail}, on ${counted(cores, 'core')}`,
      cost: 'crypto and zlib jobs share the cores, and all end late; each process has as many',
      remedy: `set it to ${Math.max(4, cores)}, or unset it: manycore sets it by the cores`,
    },
  ];
}

const fewDescriptors = 4096;

/** Node raises its soft limit to the hard limit, the second number. */
export function descriptorsFinding(limits: string): Finding[] {
  const most = /^Max open files\s+\S+\s+(\S+)/m.exec(limits)?.[1];
  if (most === undefined) return [];
  const what = 'descriptors';
  const detail = `${most} may be open in a process at a time`;
  if (!(Number(most) < fewDescriptors)) return [{ what, state: 'ok', detail }];
  return [
    {
      what,
      state: 'advice',
      detail,
      cost: 'each connection takes one: a server with as many refuses the next (EMFILE)',
      remedy: 'ulimit -Hn 65536 before it is started (systemd: LimitNOFILE=65536)',
    },
  ];
}

/** `granted`: limit of the control group in bytes; 0, or more than the machine has: no limit. */
export function memoryFinding(granted: number, heapLimit: number): Finding[] {
  if (granted === 0 || granted >= totalmem()) return [];
  const what = 'memory';
  const detail = `${sizeText(granted)} granted by the control group, ${sizeText(heapLimit)} of it for V8's heap`;
  if (heapLimit < heapShare * granted) return [{ what, state: 'ok', detail }];
  const wantedMiB = Math.round((heapShare * granted) / 1024 ** 2);
  const cost = 'a heap that grows is ended by the kernel, without a word, before V8 is short of it';
  const remedy = `NODE_OPTIONS=--max-old-space-size=${wantedMiB}`;
  return [{ what, state: 'advice', detail, cost, remedy }];
}

/** Share of memory for the heap; the rest is for buffers, code and stacks. */
const heapShare = 0.75;

function sharedMemoryFinding(): Finding[] {
  try {
    const { bsize, blocks, bavail } = statfsSync('/dev/shm');
    const [free, all] = [bavail, blocks].map((count) => sizeText(count * bsize));
    const detail = `${free} of ${all} free; manycore needs none: its memory has no name there`;
    return [{ what: '/dev/shm', state: 'info', detail }];
  } catch {
    return [];
  }
}

/** Conditions of tracing with the kernel's help. */
export interface TraceRights {
  /** Names of missing capabilities. */
  readonly missing: readonly string[];
  /** True: pids are those of the kernel, as outside of containers. */
  readonly hasOuterPids: boolean;
  readonly hasTypes: boolean;
  /** kernel.perf_event_paranoid; empty: unknown. */
  readonly paranoid: string;
  readonly isTracefsReadable: boolean;
}

function rightsHere(): TraceRights | undefined {
  if (process.platform !== 'linux') return undefined;
  return {
    missing: missingTraceRights(textOf('/proc/self/status')),
    hasOuterPids: hasOuterPids(),
    hasTypes: isReadable('/sys/kernel/btf/vmlinux'),
    paranoid: textOf('/proc/sys/kernel/perf_event_paranoid').trim(),
    isTracefsReadable: isReadable('/sys/kernel/tracing/events'),
  };
}

/** Empty on systems without these facilities. */
export function traceFinding(rights: TraceRights | undefined): Finding[] {
  if (rights === undefined) return [];
  const what = 'rights for trace';
  const { missing, hasOuterPids, hasTypes, paranoid, isTracefsReadable } = rights;
  const facts = [
    `BTF ${hasTypes ? 'is there' : 'is not there'}`,
    ...(paranoid === '' ? [] : [`perf_event_paranoid ${paranoid}`]),
    `tracefs ${isTracefsReadable ? 'readable' : 'closed'}`,
  ].join(', ');
  const cost =
    'trace -- COMMAND counts system calls by name and has no times of them; trace PID has neither, and says where threads wait';
  if (!hasOuterPids) {
    const detail = `in another PID namespace (a container), where the kernel counts by outer numbers; ${facts}`;
    const remedy = 'trace from outside, with the number that the process has there';
    return [{ what, state: 'info', detail, cost, remedy }];
  }
  if (missing.length > 0) {
    const remedy = `run it as root, or allow it: ${missing.join(' and ')}`;
    return [
      { what, state: 'info', detail: `without ${missing.join(', ')}; ${facts}`, cost, remedy },
    ];
  }
  if (hasTypes) return [{ what, state: 'ok', detail: `all there; ${facts}` }];
  return [
    {
      what,
      state: 'info',
      detail: facts,
      cost: 'what is traced in the kernel costs more',
      remedy: 'a kernel with CONFIG_DEBUG_INFO_BTF',
    },
  ];
}

/** `scope`: kernel.yama.ptrace_scope, by which a process may or may not inspect others of its user. */
export function debuggingFinding(scope: string): Finding[] {
  if (!(Number(scope) > 0)) return [];
  const what = 'inspect others';
  const detail = `kernel.yama.ptrace_scope is ${scope.trim()}`;
  const cost = 'doctor PID sees the threads of a pool, and not how many jobs wait';
  return [{ what, state: 'info', detail, cost, remedy: 'run doctor PID as root' }];
}

/** Formats a size in the largest unit that gives at least 1. */
export function sizeText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const at = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), units.length - 1);
  return `${Math.round(bytes / 1024 ** at)} ${units[at]}`;
}

function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * The layers of sandboxes, then the programs of workers with `kind: 'vm'`, of which one is enough. Nothing is wrong
 * without them: most programs need none. Empty on systems without any layer.
 */
export function partitionFindings(
  layers: readonly PartitionLayer[],
  programs: Readonly<Record<string, VmProgram>>,
): Finding[] {
  if (layers.length === 0) return [];
  return [
    ...layers.map(({ what, problem, detail }) => found(`sandbox: ${what}`, problem, detail)),
    ...Object.entries(programs).map(([name, program]) =>
      'path' in program
        ? found(`vm: ${name}`, undefined, program.path)
        : found(`vm: ${name}`, program.problem, ''),
    ),
  ];
}

function found(what: string, problem: string | undefined, detail: string): Finding {
  return { what, state: problem === undefined ? 'ok' : 'info', detail: problem ?? detail };
}
