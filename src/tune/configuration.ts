// Parameters that can be tuned, and the text of a configuration. A configuration holds only the differences
// from the present start of the program; the empty one is "as it is". Not here: the choice of candidates
// (space.ts), applying one to a command (launch.ts).

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
  /** Limit of V8's old generation, in MiB. */
  readonly heapLimit?: number;
  /** Size of a semi-space, half of V8's young generation, in MiB. */
  readonly semiSpace?: number;
  /** Helper threads of V8's collector; 0: it runs in the program's thread only. */
  readonly gcThreads?: number;
  /** Numbers of the cores that the program may run on. */
  readonly affinity?: readonly number[];
}

/** A parameter that can be tuned. */
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

/** Returns the words of a configuration as written for a shell; `[]` for the empty one. */
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

/** Returns the text of a configuration for a table. */
export function configurationText(configuration: Configuration): string {
  return wordsOf(configuration).join(' ') || 'as it is';
}

/** Returns the flags of Node. */
export function flagsOf({ heapLimit, semiSpace, gcThreads }: Configuration): string[] {
  return [
    ...(heapLimit === undefined ? [] : [`--max-old-space-size=${heapLimit}`]),
    ...(semiSpace === undefined ? [] : [`--max-semi-space-size=${semiSpace}`]),
    ...(gcThreads === undefined
      ? []
      : [gcThreads === 0 ? '--single-threaded-gc' : `--v8-pool-size=${gcThreads}`]),
  ];
}

/** Returns the environment variables. */
export function variablesOf({
  poolWorkers,
  blockingThreads,
}: Configuration): Record<string, string> {
  return {
    ...(blockingThreads !== undefined && { UV_THREADPOOL_SIZE: String(blockingThreads) }),
    ...(poolWorkers !== undefined && { MANYCORE_CORES: String(poolWorkers) }),
  };
}

/** Returns the names of Node flags that a configuration decides: no other value of them may stay. */
export function flagNamesOf(configuration: Configuration): string[] {
  return decidedBy(flagsOf(configuration));
}

/** Groups of flags that decide the same parameter. */
const tunedFlags = [
  ['--max-old-space-size'],
  ['--max-semi-space-size'],
  ['--single-threaded-gc', '--v8-pool-size'],
];

/** Returns the same for a list of flags; other flags decide only themselves. */
export function decidedBy(flags: readonly string[]): string[] {
  const names = flags.map(flagName);
  return tunedFlags.filter((same) => same.some((name) => names.includes(name))).flat();
}

/** `--max_old_space_size=60` → `--max-old-space-size`: V8 takes both. */
export function flagName(flag: string): string {
  return flag.replace(/=.*/s, '').replaceAll('_', '-');
}
