// What can be tuned, and how a configuration is written for people. A configuration holds only what differs from how
// the program is started now; the empty one is "as it is". Not here: which are tried (space.ts), how one
// is applied to a command (launch.ts).

/** Processes × event loops of a program under `manycore serve`. */
export interface LoopCounts {
  readonly processes: number;
  readonly loops: number;
}

export interface Configuration {
  readonly loops?: LoopCounts;
  /** Workers of a pool without a size of its own: `MANYCORE_CORES`. */
  readonly poolWorkers?: number;
  /** Threads of libuv's pool: `UV_THREADPOOL_SIZE`. */
  readonly blockingThreads?: number;
  /** Of V8's old generation, in MiB. */
  readonly heapLimit?: number;
  /** Of V8's young generation, in MiB: a half of it. */
  readonly semiSpace?: number;
  /** Threads that help V8's collector; 0: it works in the program's thread alone. */
  readonly gcThreads?: number;
  /** The numbers of the cores that it may run on. */
  readonly affinity?: readonly number[];
}

/** One thing that can be tuned. */
export type Parameter = keyof Configuration;

export const parameters = [
  'loops',
  'blockingThreads',
  'heapLimit',
  'poolWorkers',
  'gcThreads',
  'semiSpace',
  'affinity',
] as const satisfies readonly Parameter[];

export const asItIs: Configuration = Object.freeze({});

/** Of a configuration, as one writes it for a shell; `[]` of the empty one. */
function wordsOf(configuration: Configuration): string[] {
  const { loops, poolWorkers, blockingThreads, affinity } = configuration;
  return [
    ...(loops === undefined ? [] : [`--processes ${loops.processes} --loops ${loops.loops}`]),
    ...(blockingThreads === undefined ? [] : [`UV_THREADPOOL_SIZE=${blockingThreads}`]),
    ...(poolWorkers === undefined ? [] : [`MANYCORE_CORES=${poolWorkers}`]),
    ...flagsOf(configuration),
    ...(affinity === undefined ? [] : [`on core${affinity.length === 1 ? '' : 's'} ${affinity}`]),
  ];
}

/** For a table. */
export function configurationText(configuration: Configuration): string {
  return wordsOf(configuration).join(' ') || 'as it is';
}

/** Flags of Node. */
export function flagsOf({ heapLimit, semiSpace, gcThreads }: Configuration): string[] {
  return [
    ...(heapLimit === undefined ? [] : [`--max-old-space-size=${heapLimit}`]),
    ...(semiSpace === undefined ? [] : [`--max-semi-space-size=${semiSpace}`]),
    ...(gcThreads === undefined
      ? []
      : [gcThreads === 0 ? '--single-threaded-gc' : `--v8-pool-size=${gcThreads}`]),
  ];
}

/** Environment variables. */
export function variablesOf({
  poolWorkers,
  blockingThreads,
}: Configuration): Record<string, string> {
  return {
    ...(blockingThreads !== undefined && { UV_THREADPOOL_SIZE: String(blockingThreads) }),
    ...(poolWorkers !== undefined && { MANYCORE_CORES: String(poolWorkers) }),
  };
}

/** The flags of Node that a configuration decides, whatever they were: none of another value may stay. */
export function flagNamesOf(configuration: Configuration): string[] {
  return decidedBy(flagsOf(configuration));
}

/** Flags that decide the same. */
const tunedFlags = [
  ['--max-old-space-size'],
  ['--max-semi-space-size'],
  ['--single-threaded-gc', '--v8-pool-size'],
];

/** The same of flags: those that are not tuned decide nothing but themselves. */
export function decidedBy(flags: readonly string[]): string[] {
  const names = flags.map(flagName);
  return tunedFlags.filter((same) => same.some((name) => names.includes(name))).flat();
}

/** `--max_old_space_size=60` → `--max-old-space-size`: V8 takes both. */
export function flagName(flag: string): string {
  return flag.replace(/=.*/s, '').replaceAll('_', '-');
}
