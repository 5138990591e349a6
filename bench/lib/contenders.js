// Contenders by name. An adapter is imported only in the process that measures it, so that no rival pays for
// another's start.

const adapters = {
  manycore: './manycore.js',
  piscina: '../rivals/piscina.js',
  tinypool: '../rivals/tinypool.js',
  workerpool: '../rivals/workerpool.js',
  poolifier: '../rivals/poolifier.js',
  'bare-thread': '../rivals/bare-thread.js',
  'bare-fork': '../rivals/bare-fork.js',
};

/** The rival pools at the settings that are best for many calls at a time. */
export const rivalPools = [
  'piscina',
  'piscina-ahead',
  'tinypool-thread',
  'tinypool-thread-ahead',
  'tinypool-process',
  'workerpool-thread',
  'workerpool-process',
  'poolifier-thread',
  'poolifier-cluster',
];

/** Rival pools for one call at a time, where running ahead cannot matter. */
export const rivalPoolsOneAtATime = rivalPools.filter((name) => !name.endsWith('-ahead'));

/** Never the best at small calls; `--quick` leaves them out of the cases that use this list. */
export const slowRivals = [
  'tinypool-process',
  'workerpool-process',
  'poolifier-cluster',
  'bare-fork-advanced',
];

export const bareWays = ['bare-thread', 'bare-fork-json', 'bare-fork-advanced'];

/**
 * Opens a contender: `{ caller(name), mover?(), close() }`. `caller('add')` returns a function that runs the
 * exported function `add` of tasks.js in a worker and promises its result. `mover()` does the same for
 * `touch`, with its buffer transferred both ways.
 */
export async function openContender(kind, options = {}) {
  const open = await loadContender(kind);
  return open(options);
}

/** The same in two steps, for cases that time the second: imported, but nothing started yet. */
export async function loadContender(kind) {
  const adapter = Object.keys(adapters).find((name) => kind.startsWith(name));
  if (adapter === undefined) throw new Error(`no contender is called ${kind}`);
  const { open } = await import(new URL(adapters[adapter], import.meta.url).href);
  const [base] = kind.split('+'); // the part after "+" is for the case
  return ({ workers = 2 } = {}) => open(base, { workers });
}
