// How many threads the pool of a process should have, which libuv reads from its environment when the
// pool is first used: what we start is told before. Without a word there are 4, on any machine.
// A process that is one of several alike gets its share of the cores: crypto and zlib keep a core busy,
// so that more threads than cores end no job earlier. It never gets fewer than 4, because jobs of fs and
// dns mostly wait. Hosts of a pool are one a core, so their share is 1, and they keep the 4.
// Not here: how many cores there are (host/cores.ts), threads of `executeBlocking` (units/blocking.ts).

/** What libuv has without a word, and what none of ours has less of. */
export const fewestBlockingThreads = 4;
/** libuv takes no more. */
const mostThreads = 1024;

/** For one of `processes` processes alike that have `cores` cores together; both at least 1. */
export function blockingThreads(cores: number, processes: number): number {
  return Math.min(mostThreads, Math.max(fewestBlockingThreads, Math.ceil(cores / processes)));
}

const sizeName = 'UV_THREADPOOL_SIZE';
/** Beside it, with the same number: then it is ours, and not what the user has said. */
const oursName = 'MANYCORE_BLOCKING_THREADS';

/**
 * Says in `env` that a process is to have so many threads. What the user has set stays; what we have set
 * for this process does not go on to those that it starts.
 */
export function setBlockingThreads(env: NodeJS.ProcessEnv, threads: number): void {
  const given = env[sizeName];
  const isOurs = given === undefined || given === env[oursName];
  delete env[oursName];
  if (!isOurs) return;
  delete env[sizeName];
  if (threads === fewestBlockingThreads) return;
  env[sizeName] = String(threads);
  env[oursName] = String(threads);
}

/** A copy of `env` in which `setBlockingThreads` has said it. */
export function withBlockingThreads(env: NodeJS.ProcessEnv, threads: number): NodeJS.ProcessEnv {
  const copy = { ...env };
  setBlockingThreads(copy, threads);
  return copy;
}
