// Records of the kernel's program that many tasks share: child processes by program name, and all tasks
// without a record of their own. The kernel adds CPU time to them when a task ends; this module adds the
// time of running tasks, from /proc.

import type { NativeTracedRecord } from '../native.js';
import { countedCalls, type Joined, type Material, timesByCalls } from './counted.js';
import type { TracedThread } from './report.js';
import { isNode } from './roles.js';

/** Length to which the kernel cuts names. */
const maxNameChars = 15;

/** Role of the tasks for which no record was left. */
export const othersRole = 'others';

interface Shared {
  readonly record: NativeTracedRecord;
  /** CPU time of its tasks that still run. */
  runNs: number;
  hasEnded: boolean;
}

export class SharedRecords {
  readonly #material: Material;
  readonly #shared: readonly Shared[];

  constructor(material: Material, records: readonly NativeTracedRecord[]) {
    this.#material = material;
    this.#shared = records
      .filter(({ tid }) => tid === 0)
      .map((record) => ({ record, runNs: 0, hasEnded: true }));
  }

  /** Returns true when a thread is counted in a shared record, so that it has no line of its own. */
  take({ pid, seen, records }: Joined, isFollowed: boolean): boolean {
    if (this.#material.method !== 'ebpf' || records.length > 0 || seen === undefined) return false;
    const others = this.#shared.find(({ record }) => record.name === '');
    // The time of an ended thread is in some record, which it got at its start, at a call or at its end. Once
    // all records are used up, that of an older thread is counted from its first call on only.
    if (seen.hasEnded) return seen.runBeforeNs === 0 || (others?.record.runNs ?? 0) >= seen.runNs;
    const shared = isFollowed ? others : (this.#ofProgram(pid) ?? others);
    if (shared === undefined) return false;
    shared.runNs += seen.runNs;
    shared.hasEnded = false;
    return true;
  }

  /** Returns the record by program; a child before its exec has the arguments of its parent. */
  #ofProgram(pid: number): Shared | undefined {
    const { tree } = this.#material;
    const argsOf = (each: number | undefined): string =>
      each === undefined ? '' : (tree.identityOf(each)?.args.join('\0') ?? '');
    const isStarting = argsOf(pid) === argsOf(tree.parentOf(pid));
    // Node's main thread has another name than its program.
    const program = tree.identityOf(pid)?.program.slice(0, maxNameChars);
    const named = this.#shared.filter(
      ({ record: { name } }) => name === tree.nameOf(pid) || name === program,
    );
    return named.find(({ record }) => record.isStarting === isStarting) ?? named[0];
  }

  lines(names: ReadonlyMap<number, string>): TracedThread[] {
    return this.#shared.map(({ record, runNs, hasEnded }) => ({
      pid: 0,
      tid: 0,
      role: this.#roleOf(record),
      name: record.name,
      hasEnded,
      tasks: record.tasks,
      ...timesByCalls(record.runNs + runNs, [record]),
      samples: null,
      running: null,
      calls: countedCalls([record], this.#material.method, names),
    }));
  }

  #roleOf({ name, isStarting }: NativeTracedRecord): string {
    if (name === '') return othersRole;
    const { tree, root } = this.#material;
    const kind = tree.hasCgi ? 'CGI child' : 'child';
    // Children of a Node program before exec: the kernel does not report the next program yet.
    return isStarting && isNode(root) ? `${kind}, before exec` : `${kind} ${name}`;
  }
}
