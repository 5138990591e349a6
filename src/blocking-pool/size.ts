// The size of the pool of a process. libuv reads it from the environment at the first use of the pool, so it is
// set before a process starts. The default of libuv is 4, on any machine.
// A process that is one of several alike gets its share of the cores: crypto and zlib keep a core busy, and more
// threads than cores end no job earlier. The minimum is 4, because jobs of fs and dns mostly wait. Workers of a
// pool are one per core: their share is 1, and they keep the 4.
// Not here: how many cores there are (worker/both/cores.ts), threads of `executeBlocking` (units/loop/blocking.ts).

/** The default of libuv, and the minimum here. */
export const minBlockingThreads = 4;
/** The limit of libuv. */
const maxThreads = 1024;

/** Threads for one of `processes` alike processes that share `cores` cores; both at least 1. */
export function blockingThreads(cores: number, processes: number): number {
  return Math.min(maxThreads, Math.max(minBlockingThreads, Math.ceil(cores / processes)));
}

const sizeName = 'UV_THREADPOOL_SIZE';
/** Set beside libuv's variable with the same number: then manycore set both, not the user. */
const oursName = 'MANYCORE_BLOCKING_THREADS';

/**
 * Sets the number of threads in `env`. A value of the user stays; a value that manycore set for this process is
 * replaced for its children.
 */
export function setBlockingThreads(env: NodeJS.ProcessEnv, threads: number): void {
  const given = env[sizeName];
  const isOurs = given === undefined || given === env[oursName];
  delete env[oursName];
  if (!isOurs) return;
  delete env[sizeName];
  if (threads === minBlockingThreads) return;
  env[sizeName] = String(threads);
  env[oursName] = String(threads);
}

/** A copy of `env` with the number of threads set by `setBlockingThreads`. */
export function withBlockingThreads(env: NodeJS.ProcessEnv, threads: number): NodeJS.ProcessEnv {
  const copy = { ...env };
  setBlockingThreads(copy, threads);
  return copy;
}
