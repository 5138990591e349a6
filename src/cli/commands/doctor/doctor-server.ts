// Findings about a running server, from the status of its loops as in `manycore status`. Its processes are
// also sampled one by one (doctor-program.ts).

import type { LoopStatus, ServerStatus } from '../../../serve/index.js';
import { counted, type Finding } from './doctor-report.js';

/** `cores`: granted to this process. `all`: the servers that share them, this one included. */
export function serverFindings(
  { loops }: ServerStatus,
  cores: number,
  all: readonly ServerStatus[],
): Finding[] {
  const findings = [
    ...loops.flatMap(blockedFinding),
    ...lagFinding(loops),
    ...turnedAwayFinding(loops),
    ...restartsFinding(loops),
  ];
  return [
    sizeFinding(running(loops), running(all.flatMap((each) => each.loops)), cores),
    ...findings,
  ];
}

/** Number of loops by process. */
export function loopsByProcess({ loops }: ServerStatus): Map<number, number> {
  const counts = new Map<number, number>();
  for (const { pid, state } of loops) {
    if (pid === undefined || state === 'free') continue;
    counts.set(pid, (counts.get(pid) ?? 0) + 1);
  }
  return counts;
}

function running(loops: readonly LoopStatus[]): number {
  return loops.filter(({ state }) => state !== 'free').length;
}

function sizeFinding(own: number, all: number, cores: number): Finding {
  const what = 'loops';
  const others = all > own ? `, ${all} with those of your other servers` : '';
  const detail = `${own} on ${counted(cores, 'granted core')}${others}`;
  if (all <= cores) return { what, state: 'ok', detail };
  return {
    what,
    state: 'advice',
    detail,
    cost: 'they take turns on the cores, and each has memory of its own',
    remedy:
      own > cores
        ? `manycore serve without -P and -L, or with -P ${cores} -L 1`
        : `give each server a share of the ${counted(cores, 'core')}: -P and -L, or manycore scale`,
  };
}

/** Shorter silences are long callbacks. */
const blockedMs = 1000;

function blockedFinding(line: LoopStatus): Finding[] {
  if (line.blockedMs < blockedMs) return [];
  const seconds = Math.round(line.blockedMs / 1000);
  const detail = `loop ${line.loop} of process ${line.pid}: no sign of life for ${seconds} s`;
  return [
    {
      what: 'blocked loop',
      state: 'problem',
      detail,
      cost: `what is asked over its ${counted(line.openConnections, 'connection')} waits, until blockedTimeoutMs ends its process`,
      remedy: 'its log has the place in the program: move that into run() or pmap()',
    },
  ];
}

const longLagMs = 100;

function lagFinding(loops: readonly LoopStatus[]): Finding[] {
  const late = loops.filter(
    ({ lagMs, blockedMs: silent }) => lagMs >= longLagMs && silent < blockedMs,
  );
  const [worst] = late.sort((a, b) => b.lagMs - a.lagMs);
  if (worst === undefined) return [];
  const { loop, pid, lagMs } = worst;
  return [
    {
      what: 'loop lag',
      state: 'problem',
      detail: `${lagMs} ms in loop ${loop} of process ${pid}, ${late.length} of ${loops.length} loops are late`,
      cost: 'every answer of such a loop comes so much later',
      remedy: 'move what computes into run() or pmap(), or add processes: manycore scale',
    },
  ];
}

function turnedAwayFinding(loops: readonly LoopStatus[]): Finding[] {
  const count = loops.reduce((sum, { turnedAway }) => sum + turnedAway, 0);
  if (count === 0) return [];
  return [
    {
      what: 'turned away',
      state: 'problem',
      detail: `${counted(count, 'connection')} since the start`,
      cost: 'no loop took them for overloadMs, and their clients got 503',
      remedy: 'add processes (manycore scale), or shorten what loops do at a time',
    },
  ];
}

function restartsFinding(loops: readonly LoopStatus[]): Finding[] {
  const ended = loops.filter(({ loop, lastExit }) => loop === 0 && lastExit !== undefined);
  const [first] = ended;
  if (first === undefined) return [];
  return [
    {
      what: 'restarts',
      state: 'advice',
      detail: `${ended.length} of its processes replaced another, one of which ended so: ${first.lastExit}`,
      cost: 'what a process holds is lost when it ends by itself',
      remedy: 'see its log; after a reload or maxRssBytes it is as it should be',
    },
  ];
}
