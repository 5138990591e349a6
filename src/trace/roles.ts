// What a thread is for: the main loop, a loop of a server, the blocking pool. From the names that Node
// gives its threads from version 22 on; Node 20 gives none, so there their order and what they wait for
// must do. Nothing is asked of the program.

import type { ProcessIdentity } from './proc.js';

/** A thread as it is known so far. */
export interface KnownThread {
  readonly pid: number;
  readonly tid: number;
  readonly name: string;
  /** Whether it was seen to wait for events: such a thread is an event loop. */
  readonly waitsForEvents: boolean;
}

/** Threads of Node and of ours that have a name of their own. The kernel cuts names to 15 characters. */
const namedRoles: readonly (readonly [name: RegExp, role: string])[] = [
  [/^libuv-worker$/, 'blocking pool'],
  [/^(node-)?V8Worker$|^DelayedTaskSche$/, 'V8 helper'],
  [/^SignalInspector$/, 'inspector'],
  [/^manycore-accept$/, 'listener'],
  [/^manycore-route$/, 'router'],
  [/^manycore-parent$/, 'parent watch'],
  [/^manycore stack$/, 'stack reader'],
  [/^manycore worker$/, 'worker thread'],
];

/** Node 20 starts these first, in this order: what delays V8's tasks, four that do them, the inspector. */
const firstHelpers = 5;

/** Whether a process runs Node. */
export function isNode({ program, args }: ProcessIdentity): boolean {
  return isNodeName(program) || /^manycore\b/.test(args[0] ?? '');
}

/** Of what nobody saw only the name of a thread is known: it is Node's, or a title that we give. */
function isNodeName(name: string): boolean {
  return /^(node|manycore|MainThread$|libuv-worker$|WorkerThread$)/.test(name);
}

/**
 * The role of the main thread of one of our workers, `worker 1` or `shared worker 1`: it bears its number in the
 * title that it gives itself, over its arguments. `undefined` for other processes.
 */
export function workerRole({ args }: ProcessIdentity): string | undefined {
  return /^manycore ((?:shared )?worker \d+)$/.exec(args[0] ?? '')?.[1];
}

/** Whether a process is one that a server of ours was started into: its parent is the supervisor. */
export function isServerProcess({ args }: ProcessIdentity): boolean {
  return /^manycore serve\b/.test(args[0] ?? '');
}

/**
 * Roles by thread number, for the threads of one process in the order of their start. `mainRole`: that of the
 * main thread, if the process runs Node.
 */
export function rolesOf(
  identity: ProcessIdentity,
  threads: readonly KnownThread[],
  mainRole: string,
): Map<number, string> {
  const roles = new Map<number, string>();
  if (!isNode(identity)) {
    // Nobody saw the name of what lived for moments.
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

/** Threads that nobody named have the name of whoever started them. */
function isUnnamed({ name }: KnownThread, [main]: readonly KnownThread[]): boolean {
  return name === 'node' || name === main?.name;
}
