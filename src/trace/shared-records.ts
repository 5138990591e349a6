// Records of the kernel's program that many tasks share: child processes by the name of their program, and
// all for which there was no other. The kernel adds CPU time to them when a task ends; that of tasks that
// still run is added here, from /proc.

import type { NativeTracedRecord } from '../native.js';
import { countedCalls, type Joined, type Material, timesByCalls } from './counted.js';
import type { TracedThread } from './report.js';
import { isNode } from './roles.js';

/** The kernel cuts names to so many. */
const maxNameChars = 15;

/** The role of all that found the records used up. */
export const othersRole = 'others';

interface Shared {
  readonly record: NativeTracedRecord;
  /** Of its tasks that still run. */
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

  /** Whether a thread counts into one of these, so that it has no line of its own. */
  take({ pid, seen, records }: Joined, isFollowed: boolean): boolean {
    if (this.#material.method !== 'ebpf' || records.length > 0 || seen === undefined) return false;
    // A thread that has ended is in some record, with its time: the one that it got when it was started,
    // or at a call, as ending is one. Not so one from before the trace that was killed without a call.
    if (seen.hasEnded) return !seen.isOlder;
    const others = this.#shared.find(({ record }) => record.name === '');
    const shared = isFollowed ? others : (this.#ofProgram(pid) ?? others);
    if (shared === undefined) return false;
    shared.runNs += seen.runNs;
    shared.hasEnded = false;
    return true;
  }

  /** A child that runs no program of its own yet has the arguments of its parent. */
  #ofProgram(pid: number): Shared | undefined {
    const { tree } = this.#material;
    const argsOf = (each: number | undefined): string =>
      each === undefined ? '' : (tree.identityOf(each)?.args.join('\0') ?? '');
    const isStarting = argsOf(pid) === argsOf(tree.parentOf(pid));
    // Node calls its main thread otherwise than its program.
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
    // Of a Node program they are on their way to another; what it is the kernel does not say yet.
    return isStarting && isNode(root) ? `${kind}, before exec` : `${kind} ${name}`;
  }
}
