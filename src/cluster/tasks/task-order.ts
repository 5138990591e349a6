// Conditions of a durable task to the node that runs it: its age, the modules that it may call, the versions of manycore
// and of its code.

import { importVersion } from '../../context/index.js';
import { CodedError } from '../../errors.js';
import { refused } from '../errors.js';
import { protocolVersion } from '../protocol.js';
import { giveBackMs, keptMs } from './jetstream.js';
import { protocolOf, readTask, type TaskOrder } from './task-frames.js';

/** The longest delay of a task that needs another version of its code, in ms. */
const maxVersionDelayMs = 600_000;

/** Throws for a task that must not run. `modules`: the only ones that it may call. */
export function check({ time, target }: TaskOrder, modules: ReadonlySet<string> | undefined): void {
  if (Date.now() - time > keptMs) throw refused('a durable task is older than a week');
  if (modules === undefined || (target !== null && modules.has(target.url))) return;
  const what = target === null ? 'a function' : `${target.exportName} of ${target.url}`;
  const wayOut = 'without a secret it runs only exports of its --module files, see task()';
  throw new CodedError('CLUSTER_UNSIGNED', `a node may not run ${what}: ${wayOut}`);
}

/** Returns the reason why this node has another manycore or other code than the caller; `undefined`: the same. */
export function otherVersion(task: Buffer): string | undefined {
  const protocol = protocolOf(task);
  if (typeof protocol === 'number' && protocol !== protocolVersion) {
    const text = `a durable task has version ${protocol} of the protocol, and this node ${protocolVersion}`;
    return `${text}: it waits for a node with the manycore of its caller, so give all one version`;
  }
  const order = orderOf(task);
  for (const { specifier, parent, version } of order?.code ?? []) {
    const own = importVersion(specifier, parent);
    if (own === undefined || own === version) continue; // a missing file fails in the worker
    const from = parent === '' ? '' : ` (imported by ${parent})`;
    const text = `the durable task ${order?.name} needs ${specifier}${from} in version ${version}`;
    const way = 'it waits for a node with that version, so put the same files on all nodes';
    return `${text}, and here it is ${own}: ${way}`;
  }
  return undefined;
}

/** Grows with each delivery, which brings the task nearer to its limit: some node may get the right files. */
export function versionDelayMs(deliveries: number): number {
  return Math.min(giveBackMs * 2 ** (deliveries - 1), maxVersionDelayMs);
}

/** Returns `undefined` for bytes that are no task: its run reports that to the caller. */
export function orderOf(task: Buffer): TaskOrder | undefined {
  try {
    return readTask(task).order;
  } catch {
    return undefined;
  }
}
