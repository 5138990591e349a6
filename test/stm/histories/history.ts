// Judges whether transactions that ran beside each other could have run one after the other. Each variable counts its
// versions, and each transaction reads a variable before it sets it, so that all orders are known: the graph of Adya
// (1999) with the order of real time has a cycle, or there is such an order (the way of Elle: Kingsbury, Alvaro 2020).
// Attempts in vain are transactions that only read: they, too, must have seen one moment (opacity). A transaction sees
// its own writes, which order nothing: these reads are compared at once.
// Not here: queues, which become variables first (queue-history.ts).

/** A version of a variable: how many times it was set, and the transaction that did so; 0, 0: the first value. */
export interface Version {
  readonly variable: number | string;
  readonly count: number;
  readonly by: number;
}

/** One attempt of a transaction. */
export interface Run {
  /** Above 0, of the transaction. */
  readonly id: number;
  /** Times before and after it, by one clock for all. */
  readonly start: number;
  readonly end: number;
  readonly reads: readonly Version[];
  /** Others never see those of an attempt in vain. */
  readonly writes: readonly Version[];
  /** Reads after all writes, of variables that it has read before. */
  readonly again?: readonly Version[];
  readonly isInVain?: boolean;
  /** The message of an exception: no transaction of a history throws one. */
  readonly error?: string;
}

/** Returns what contradicts an order of the runs; `undefined`: there is one. */
export function contradictionIn(runs: readonly Run[]): string | undefined {
  const writers = new Map<string, Run>();
  for (const run of runs) {
    const alone = contradictionOf(run);
    if (alone !== undefined) return alone;
    for (const version of committedBy(run)) {
      const key = keyOf(version.variable, version.count);
      if (writers.has(key)) return `two transactions set ${key}`;
      writers.set(key, run);
    }
  }
  const edges = new Map<unknown, unknown[]>();
  const add = (before: unknown, after: unknown): void => {
    if (before === after) return;
    const known = edges.get(before);
    if (known === undefined) edges.set(before, [after]);
    else known.push(after);
  };
  for (const run of runs) {
    for (const { variable, count, by } of run.reads) {
      const writer = writers.get(keyOf(variable, count));
      if ((writer?.id ?? 0) !== by)
        return `a transaction read ${keyOf(variable, count)} of ${by}, which never was`;
      if (writer !== undefined) add(writer, run);
      const next = writers.get(keyOf(variable, count + 1));
      if (next !== undefined) add(run, next);
    }
    for (const { variable, count } of committedBy(run)) {
      const next = writers.get(keyOf(variable, count + 1));
      if (next !== undefined) add(run, next);
    }
  }
  addTime(runs, add);
  return cycleIn(edges);
}

/** Returns what one run alone cannot have seen. */
function contradictionOf(run: Run): string | undefined {
  if (run.error !== undefined) return `transaction ${run.id} threw ${run.error}`;
  for (const version of run.again ?? []) {
    const isOfIt = ({ variable }: Version): boolean => variable === version.variable;
    const wanted = run.writes.find(isOfIt) ?? run.reads.find(isOfIt);
    if (wanted === undefined || isSame(wanted, version)) continue;
    return `transaction ${run.id} read ${shownVersion(version)} again, and not ${shownVersion(wanted)}`;
  }
  return undefined;
}

function committedBy(run: Run): readonly Version[] {
  return run.isInVain === true ? [] : run.writes;
}

function isSame(one: Version, other: Version): boolean {
  return one.variable === other.variable && one.count === other.count && one.by === other.by;
}

function shownVersion({ variable, count, by }: Version): string {
  return `${keyOf(variable, count)} of ${by}`;
}

function keyOf(variable: number | string, count: number): string {
  return `version ${count} of variable ${variable}`;
}

/** A run is after all that ended before it began: moments in a chain, instead of an edge for each pair. */
function addTime(runs: readonly Run[], add: (before: unknown, after: unknown) => void): void {
  const ended = runs.toSorted((one, other) => one.end - other.end);
  const begun = runs.toSorted((one, other) => one.start - other.start);
  let moment: object | undefined;
  let at = 0;
  for (const run of begun) {
    for (let other = ended[at]; other !== undefined && other.end < run.start; other = ended[at]) {
      const next = {};
      if (moment !== undefined) add(moment, next);
      add(other, next);
      moment = next;
      at += 1;
    }
    if (moment !== undefined) add(moment, run);
  }
}

function cycleIn(edges: ReadonlyMap<unknown, readonly unknown[]>): string | undefined {
  const done = new Set<unknown>();
  for (const root of edges.keys()) {
    const path: { readonly node: unknown; next: number }[] = [];
    const onPath = new Set<unknown>();
    const enter = (node: unknown): void => {
      path.push({ node, next: 0 });
      onPath.add(node);
    };
    if (!done.has(root)) enter(root);
    for (let last = path.at(-1); last !== undefined; last = path.at(-1)) {
      const after = edges.get(last.node)?.[last.next];
      last.next += 1;
      if (after === undefined) {
        done.add(last.node);
        onPath.delete(last.node);
        path.pop();
      } else if (onPath.has(after)) {
        const from = path.findIndex(({ node }) => node === after);
        return `each of these is before the next one, and the last before the first:\n${shown(path.slice(from))}`;
      } else if (!done.has(after)) enter(after);
    }
  }
  return undefined;
}

function shown(path: readonly { readonly node: unknown }[]): string {
  const runs = path.map(({ node }) => node).filter((node) => Reflect.has(Object(node), 'reads'));
  return runs.map((run) => JSON.stringify(run)).join('\n');
}
