// The role of a thread: main loop, a loop of a server, blocking pool. From version 22 on Node names its
// threads; in Node 20 their order and the calls in which they wait decide. The program itself is not
// queried.

import type { ProcessIdentity } from './samples.js';

/** A thread as known so far. */
export interface KnownThread {
  readonly pid: number;
  readonly tid: number;
  readonly name: string;
  /** True: it was seen waiting for events, so it is an event loop. */
  readonly waitsForEvents: boolean;
}

/** Names of threads of Node and of manycore. The kernel cuts names to 15 characters. */
const namedRoles: readonly (readonly [name: RegExp, role: string])[] = [
  [/^libuv-worker$/, 'blocking pool'],
  [/^(node-)?V8Worker$|^DelayedTaskSche$/, 'V8 helper'],
  [/^SignalInspector$/, 'inspector'],
  [/^manycore-accept$/, 'listener'],
  [/^manycore-route$/, 'router'],
  [/^manycore-parent$/, 'parent watch'],
  [/^manycore stack$/, 'stack reader'],
  [/^manycore worker$/, 'thread worker'],
];

/**
 * Threads that Node 20 starts first, in this order: V8's delayed tasks, four for V8's tasks, the inspector.
 */
const firstHelpers = 5;

/** Returns true for a process that runs Node. */
export function isNode({ program, args }: ProcessIdentity): boolean {
  return isNodeName(program) || /^manycore\b/.test(args[0] ?? '');
}

/** For a process that was never sampled only a thread name is known: Node's, or a title of manycore. */
function isNodeName(name: string): boolean {
  return /^(node|manycore|MainThread$|libuv-worker$|WorkerThread$)/.test(name);
}

/**
 * Returns the role of the main thread of a worker of manycore, `worker 1` or `shared worker 1`, from the
 * title that it writes over its arguments. `undefined` for other processes.
 */
export function workerRole({ args }: ProcessIdentity): string | undefined {
  return /^manycore ((?:shared )?worker \d+)$/.exec(args[0] ?? '')?.[1];
}

/** Returns true for a server process of manycore, whose parent is the supervisor. */
export function isServerProcess({ args }: ProcessIdentity): boolean {
  return /^manycore serve\b/.test(args[0] ?? '');
}

/**
 * Returns roles by thread number, for the threads of one process in the order of their start. `mainRole`:
 * role of the main thread, if the process runs Node.
 */
export function rolesOf(
  identity: ProcessIdentity,
  threads: readonly KnownThread[],
  mainRole: string,
): Map<number, string> {
  const roles = new Map<number, string>();
  if (!isNode(identity)) {
    // A short-lived process has no known name.
    const named = identity.isCgi ? 'CGI child' : 'thread';
    for (const { tid, name } of threads) roles.set(tid, name === '' ? 'child' : `${named} ${name}`);
    return roles;
  }
  let loops = 0;
  threads.forEach((thread, at) => {
    const named = namedRoles.find(([name]) => name.test(thread.name))?.[1];
    if (thread.tid === thread.pid) roles.set(thread.tid, mainRole);
    else if (named !== undefined) roles.set(thread.tid, named);
    else if (isUnnamed(thread, threads) && at <= firstHelpers) roles.set(thread.tid, 'V8 helper');
    else if (thread.waitsForEvents || thread.name === 'WorkerThread') {
      loops += 1;
      roles.set(thread.tid, `loop ${loops}`);
    } else if (isUnnamed(thread, threads) && at === firstHelpers + 1) {
      roles.set(thread.tid, 'inspector');
    } else if (isUnnamed(thread, threads)) roles.set(thread.tid, 'blocking pool');
    else roles.set(thread.tid, `thread ${thread.name}`);
  });
  return roles;
}

/** Threads without a name of their own have the name of their creator. */
function isUnnamed({ name }: KnownThread, [main]: readonly KnownThread[]): boolean {
  return name === 'node' || name === main?.name;
}
