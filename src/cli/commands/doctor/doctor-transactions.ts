// Finding about transactions of a program: whether many run in vain, and over which variable.
// Not here: the counts (stm/stats.ts).

import { memoriesOf, type PolledThread } from '../../../observe/index.js';
import type { StmContention, StmKind } from '../../../stm/index.js';
import { type Finding, percent } from './doctor-report.js';

/** Transactions in the memory of a program, between two polls. */
export interface SeenTransactions {
  readonly commits: number;
  readonly conflicts: number;
  readonly contended: readonly StmContention[];
}

/** `undefined`: none of its threads has transactional memory. */
export function transactionsBetween(
  first: readonly PolledThread[],
  last: readonly PolledThread[],
): SeenTransactions | undefined {
  const [before, after] = [first, last].map(
    (polled) => memoriesOf(polled.flatMap(({ stats }) => stats ?? []))[0]?.stats,
  );
  if (before === undefined || after === undefined) return undefined;
  const more = (name: 'commits' | 'conflicts'): number =>
    ((after[name] ?? 0) - (before[name] ?? 0)) >>> 0;
  return {
    commits: more('commits'),
    conflicts: more('conflicts'),
    contended: contendedSince(before.contended ?? [], after.contended ?? []),
  };
}

/** The contentions that have grown: a count that aged meanwhile is as it is. */
function contendedSince(
  before: readonly StmContention[],
  after: readonly StmContention[],
): StmContention[] {
  const left = [...before];
  const grown = after.flatMap((each): StmContention[] => {
    const at = left.findIndex(({ name, kind }) => name === each.name && kind === each.kind);
    const [old] = at < 0 ? [] : left.splice(at, 1);
    const more = each.conflicts - (old?.conflicts ?? 0);
    return more === 0 ? [] : [{ ...each, conflicts: more > 0 ? more : each.conflicts }];
  });
  return grown.sort((one, other) => other.conflicts - one.conflicts);
}

/** Fewer attempts in vain are no matter, however few transactions there are. */
const fewConflicts = 100;
const muchShare = 0.2;

export function transactionFindings(seen: SeenTransactions | undefined): Finding[] {
  if (seen === undefined) return [];
  const what = 'transactions';
  const { commits, conflicts, contended } = seen;
  const share = conflicts / Math.max(1, commits + conflicts);
  const counts = `${commits} commits and ${conflicts} attempts in vain in a second`;
  if (conflicts < fewConflicts || share < muchShare) return [{ what, state: 'ok', detail: counts }];
  const [most] = contended;
  const all = contended.reduce((sum, each) => sum + each.conflicts, 0);
  const part = most !== undefined && most.conflicts > all / 2 ? 'most' : 'many';
  const detail = most === undefined ? counts : `${counts}, ${part} of them over ${shown(most)}`;
  const cost = `${percent(share)} of all attempts ran for nothing, and ran again`;
  return [{ what, state: 'problem', detail, cost, remedy: remedyOf(most) }];
}

function shown({ name, kind }: StmContention): string {
  if (name !== undefined) return `the ${kind} ${JSON.stringify(name)}`;
  return kind === undefined ? 'a collection without a name' : 'a variable without a name';
}

const remedies: Readonly<Record<StmKind, string>> = {
  TVar: 'divide it into several variables; for a number that is only added to, tcounter()',
  TMap: 'shorten the transactions that change it; the size and the entries of a map conflict with each change',
  TSortedMap:
    'change keys that are not neighbours, or use a tmap() where the order is not needed; size and ranges conflict with each change in them',
  TList: 'use a tsortedMap(): a list conflicts along the way to a key',
  TQueue: 'put several values as one item, or use several queues',
  TCounter: 'read its value less often: that conflicts with each add',
};

function remedyOf(most: StmContention | undefined): string {
  const name = most?.name === undefined ? 'give it a name by named() to see which one it is; ' : '';
  const kind = most?.kind;
  // A program of another version may have more kinds.
  return kind === undefined || !Object.hasOwn(remedies, kind)
    ? `${name}let transactions change fewer parts of it`
    : name + remedies[kind];
}
