// Candidates for a program on this machine, and the reasons for leaving out others: each one costs runs.
// The first ones are tried first when time is short.

import { blockingThreads, minBlockingThreads } from '../../blocking-pool/index.js';
import {
  type Configuration,
  type LoopCounts,
  type Parameter,
  parameters,
} from '../configuration.js';
import type { RunStats } from '../load/run-stats.js';
import type { Current, Program } from '../program/launch.js';
import type { Candidate } from './search.js';

export interface SpaceOptions {
  readonly kind: Program['kind'];
  readonly current: Current;
  /** Number of cores granted to us. */
  readonly cores: number;
  /** Numbers of these cores; empty where a program cannot be restricted to some of them. */
  readonly allowedCores: readonly number[];
  /** V8's default heap limit in the program's Node, in MiB. */
  readonly defaultHeapMb: number;
  /** Memory of the machine, or the limit of the control group, in MiB. */
  readonly memoryMb: number;
  /** Major version of the program's Node. */
  readonly nodeMajor: number;
  /** Stats of a run as it is. */
  readonly stats: RunStats;
  /** True: the program has workers of a pool. */
  readonly hasWorkers: boolean;
  /** The only parameters to try, also apparently useless ones; `undefined`: all useful ones. */
  readonly only: readonly Parameter[] | undefined;
}

export interface Space {
  readonly candidates: readonly Candidate[];
  readonly notTried: readonly NotTried[];
}

export interface NotTried {
  readonly parameter: Parameter;
  readonly why: string;
}

/** Candidates of one parameter, cheapest first, or the reason for having none. */
type Choices = readonly Configuration[] | string;

/** First release of Node with a larger default semi-space. */
const largeSemiSpaceFrom = 24;
/** Share of the heap limit below which a process is far from it. */
const nearShare = 0.5;

/** Largest share of memory for a heap: a process has more than its heap, a machine more than one process. */
const maxMemoryShare = 0.75;

export function spaceOf(options: SpaceOptions): Space {
  const candidates: Candidate[] = [];
  const notTried: NotTried[] = [];
  for (const parameter of parameters) {
    if (options.only?.includes(parameter) === false) continue;
    const choices = choicesOf[parameter](options);
    if (typeof choices === 'string') notTried.push({ parameter, why: choices });
    else
      candidates.push(
        ...choices.map((configuration, cost) => ({ parameter, configuration, cost })),
      );
  }
  return { candidates, notTried };
}

const choicesOf: Readonly<Record<Parameter, (options: SpaceOptions) => Choices>> = {
  loops({ kind, cores, current }) {
    if (kind !== 'serve') return 'it does not run under manycore serve: --serve tries that';
    const halves: LoopCounts[] = cores < 4 ? [] : [{ processes: 2, loops: Math.ceil(cores / 2) }];
    const all: LoopCounts[] = [
      { processes: 1, loops: 1 },
      { processes: 1, loops: cores },
      ...halves,
      { processes: cores, loops: 1 },
    ];
    const { processes, loops } = current.loops;
    const others = all.filter((each) => each.processes !== processes || each.loops !== loops);
    return distinct(others).map((each) => ({ loops: each }));
  },

  blockingThreads({ kind, cores, current }) {
    const own = kind === 'serve' ? servedThreads(cores, current) : minBlockingThreads;
    const now = current.blockingThreads ?? own;
    const counts = distinct([cores, minBlockingThreads, 2 * cores, 4 * cores, 16]);
    return counts
      .filter((count) => count !== now && count <= 1024)
      .sort((a, b) => a - b)
      .map((blockingThreads) => ({ blockingThreads }));
  },

  heapLimit({ current, defaultHeapMb, memoryMb, stats, only }) {
    const limit = current.heapLimitMb ?? defaultHeapMb;
    const used = stats.largestMiB;
    const isFar = used !== undefined && used < limit * nearShare;
    if (isFar && only === undefined) {
      const whose = current.heapLimitMb === undefined ? "V8's own limit" : 'the limit';
      return `${whose} of ${Math.round(limit)} MiB is far from the ${Math.round(used)} MiB that a process has`;
    }
    const limits = distinct([2 * limit, 4 * limit, defaultHeapMb].map(Math.round));
    const higher = limits.filter((each) => each > limit);
    const affordable = higher.filter((each) => each <= memoryMb * maxMemoryShare);
    if (affordable.length === 0 && higher.length > 0) {
      return `a higher limit than ${Math.round(limit)} MiB is more than the ${Math.round(memoryMb)} MiB of memory here allow`;
    }
    return affordable.sort((a, b) => a - b).map((heapLimit) => ({ heapLimit }));
  },

  poolWorkers({ kind, cores, current, hasWorkers, only }) {
    if (kind === 'serve') return 'the loops of a server share its workers, one for each core';
    if (!hasWorkers && only === undefined) return 'no worker of a pool was seen';
    const now = current.poolWorkers ?? cores;
    return distinct([1, cores - 1, cores, 2 * cores])
      .filter((count) => count > 0 && count !== now)
      .map((poolWorkers) => ({ poolWorkers }));
  },

  gcThreads({ kind, current }) {
    const counts = kind === 'other' ? [1] : [1, 0]; // NODE_OPTIONS refuses --single-threaded-gc
    const others = counts.filter((count) => count !== current.gcThreads);
    return others.map((gcThreads) => ({ gcThreads }));
  },

  semiSpace({ nodeMajor, current }) {
    const sizes = nodeMajor >= largeSemiSpaceFrom ? [16, 128] : [32, 64];
    const others = sizes.filter((size) => size !== current.semiSpaceMb);
    return others.map((semiSpace) => ({ semiSpace }));
  },

  affinity({ allowedCores }) {
    if (allowedCores.length === 0) return 'the native binary is missing, which keeps it to cores';
    if (allowedCores.length === 1) return 'there is one core';
    return [{ affinity: allowedCores.slice(0, Math.ceil(allowedCores.length / 2)) }];
  },
};

/**
 * Returns the blocking threads that `manycore serve` gives each process; `undefined` when the number of
 * processes is unknown and matters.
 */
function servedThreads(cores: number, { loops: { processes } }: Current): number | undefined {
  if (processes !== undefined) return blockingThreads(cores, processes);
  return cores <= minBlockingThreads ? minBlockingThreads : undefined;
}

function distinct<T>(values: readonly T[]): T[] {
  const seen = new Map(values.map((value) => [JSON.stringify(value), value]));
  return [...seen.values()];
}
