// Rows of servers and their loops. A server is found by its control socket, by the stats of its supervisor's
// thread (also without such a socket), or as loops with units. One that is found in several ways has one row.

import type { ThreadStats } from '../../agent/index.js';
import { addressesIn, addressText, type LoopStatus, loopsIn } from '../../serve/index.js';
import { type KnownThread, numberIn, objectsIn, sourcesOf, textIn } from '../parse-stats.js';
import type { FoundServer, Program } from '../programs.js';
import { perSecond, type Rate, total } from './rates.js';
import type { LoopView, ServerView } from './view-types.js';

/** A server or a group of loops, from any of these sources. */
interface ParsedServer {
  readonly key: string;
  readonly app: string;
  readonly addresses: readonly string[];
  readonly units: readonly string[];
  readonly loops: readonly LoopStatus[];
  readonly lostProcesses: number;
}

/** A server now and at the previous poll. */
interface Pair {
  readonly now: ParsedServer;
  readonly last: ParsedServer | undefined;
  readonly rate: Rate;
}

/** Pids of the processes of all loops. */
export function loopPids(
  servers: readonly FoundServer[],
  threads: readonly ThreadStats[],
): number[] {
  const reported = threads.flatMap((thread) => [...serversIn(thread), ...unitsIn(thread)]);
  return [...servers, ...reported].flatMap((server) => pidsOf(server));
}

function pidsOf({ loops }: { readonly loops: readonly LoopStatus[] }): number[] {
  return loops.flatMap(({ pid }) => pid ?? []);
}

export function serverViews(
  program: Program,
  earlier: Program | undefined,
  threads: readonly KnownThread[],
): ServerView[] {
  const byAgent = threads.flatMap((thread) => pairs(thread, serversIn));
  const found = program.servers.map((server) => foundPair(server, earlier));
  const units = threads
    .flatMap((thread) => pairs(thread, unitsIn))
    .filter(({ now }) => now.loops.length > 0 && !found.some((pair) => isSame(pair.now, now)));
  const shown = [...found, ...units];
  const others = byAgent.filter(({ now }) => !shown.some((pair) => isSame(pair.now, now)));
  const lostOf = (server: ParsedServer): number =>
    byAgent.find(({ now }) => isSame(now, server))?.now.lostProcesses ?? server.lostProcesses;
  return [...shown, ...others].map((pair) => serverView(pair, lostOf(pair.now)));
}

/**
 * Compares processes, then app and addresses: one process may serve several apps, and one app several times.
 */
function isSame(one: ParsedServer, other: ParsedServer): boolean {
  const pids = new Set(pidsOf(one));
  if (pidsOf(other).some((pid) => pids.has(pid))) return true;
  const isPlaced = one.addresses.length > 0 && one.app === other.app;
  return isPlaced && one.addresses.join() === other.addresses.join();
}

function foundPair(server: FoundServer, earlier: Program | undefined): Pair {
  const now = parsedFrom(server);
  const before = earlier?.servers.find((other) => isSame(parsedFrom(other), now));
  const elapsedMs = before === undefined ? 0 : server.answeredMs - before.answeredMs;
  const rate: Rate = (count, was) => perSecond(count, was, elapsedMs);
  return { now, last: before && parsedFrom(before), rate };
}

function parsedFrom({ app, addresses, loops }: FoundServer): ParsedServer {
  const texts = addresses.map(addressText);
  const key = keyOfServer(app, texts);
  return { key, app, addresses: texts, units: [], loops, lostProcesses: 0 };
}

/** Addresses are unique to a server. */
function keyOfServer(app: string, addresses: readonly string[]): string {
  return `${app} ${addresses.join()}`;
}

function pairs(
  { thread, last, rate }: KnownThread,
  serversOf: (thread: ThreadStats) => readonly ParsedServer[],
): Pair[] {
  const before = last === undefined ? [] : serversOf(last);
  return serversOf(thread).map((now) => {
    return { now, last: before.find((other) => isSame(other, now)), rate };
  });
}

function serversIn(thread: ThreadStats): ParsedServer[] {
  return sourcesOf(thread, 'server').map(({ stats }) => {
    const { addresses, loops }: { addresses?: unknown; loops?: unknown } = Object(stats);
    const app = textIn(stats, 'app');
    const texts = addressesIn(addresses).map(addressText);
    return {
      key: keyOfServer(app, texts),
      app,
      addresses: texts,
      units: [],
      loops: loopsIn(loops),
      lostProcesses: numberIn(stats, 'lostProcesses'),
    };
  });
}

function unitsIn(thread: ThreadStats): ParsedServer[] {
  return sourcesOf(thread, 'loops').map(({ id, stats }) => {
    const { loops }: { loops?: unknown } = Object(stats);
    const units = objectsIn(stats, 'deployments').map((unit) => textIn(unit, 'name'));
    const key = `units ${thread.pid}.${thread.thread}.${id}`;
    return { key, app: 'units', addresses: [], units, loops: loopsIn(loops), lostProcesses: 0 };
  });
}

function serverView({ now, last, rate }: Pair, lostProcesses: number): ServerView {
  const { key, app, addresses, units } = now;
  const loops = now.loops.map((loop) => loopView(loop, last?.loops, rate));
  return {
    key,
    app,
    addresses,
    units,
    loops,
    openConnections: total(loops.map(({ openConnections }) => openConnections)) ?? 0,
    requestsPerSecond: total(loops.map(({ requestsPerSecond }) => requestsPerSecond)),
    turnedAway: total(now.loops.map(({ turnedAway }) => turnedAway)) ?? 0,
    lostProcesses,
  };
}

function loopView(loop: LoopStatus, last: readonly LoopStatus[] | undefined, rate: Rate): LoopView {
  const before = last?.find(
    (other) => other.process === loop.process && other.loop === loop.loop && other.pid === loop.pid,
  );
  return {
    process: loop.process,
    loop: loop.loop,
    pid: loop.pid,
    state: loop.state,
    utilization: loop.utilization,
    lagMs: loop.lagMs,
    blockedMs: loop.blockedMs,
    openConnections: loop.openConnections,
    requestsInFlight: loop.requestsInFlight,
    requestsPerSecond: rate(loop.requests, before?.requests),
    rssBytes: loop.rssBytes,
    lastExit: loop.lastExit,
  };
}
